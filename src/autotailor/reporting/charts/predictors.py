"""How well latency and accuracy are predicted: predicted against measured SubNets."""

import math
from typing import Any

import altair as alt
import pandas as pd

from autotailor.reporting.charts.marks import Axis, Drawing, Row, data, error_bars, interval
from autotailor.reporting.inputs import Tables
from autotailor.reporting.page.chart import Part
from autotailor.reporting.page.palette import color

HEIGHT = 320
BOUNDS = (0.05, 0.10)
"""Relative errors that are shown as bands."""


def latency(tables: Tables) -> tuple[Part, ...]:
    """Predicted against measured latency, and the relative errors beside the noise floor."""
    rows = []
    for row in _records(tables, "validation"):
        error, floor = 100 * row["relative_error"], 100 * row["noise_floor"]
        predicted, measured = row["predicted_ms"], row["measured_ms"]
        hint = f"{row.get('subnet', '')}\npredicted {predicted:.4g} ms\nmeasured {measured:.4g} ms\n{error:+.1f} %"
        rows.append({"x": measured, "y": predicted, "error": error, "floor": floor, "hint": hint})
    return (
        Part(_scatter(rows).properties(height=HEIGHT), "Predicted against measured latency", 0.48),
        Part(_errors(rows).properties(height=HEIGHT), "Predicted minus measured, over measured", 0.48),
    )


def accuracy(tables: Tables) -> tuple[Part, ...]:
    """Predicted against measured accuracy."""
    rows = []
    for row in _records(tables, "accuracy_validation"):
        own, error = row["predicted_standard_error"], row["standard_error"]
        hint = f"{row.get('subnet', '')}\npredicted {row['predicted']:.2f} %\nmeasured {row['measured']:.2f} %"
        at = {"x": row["predicted"], "y": row["measured"], "hint": hint}
        rows.append(at | interval(row["predicted"], own, "x") | interval(row["measured"], error, "y"))
    x, y = Axis(f"predicted {tables.score.mean} (%)"), Axis(f"measured {tables.score.mean} (%)")
    chart = alt.layer(_diagonal(rows, x, y), error_bars(rows, x, y, "blue"), _dots(rows, x, y))
    return (Part(chart.properties(height=HEIGHT), f"{tables.score.mean_title} of validation SubNets", 0.6),)


def _records(tables: Tables, name: str) -> list[dict[str, Any]]:
    """Rows of a table, with NaN where a cell is empty."""
    table: pd.DataFrame = tables.needed(name)
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]


def _dots(rows: list[Row], x: Axis, y: Axis) -> Drawing:
    chart = alt.Chart(data(rows)).mark_point(filled=True, opacity=1, size=60, color=color("blue"), stroke=color("card"))
    return chart.encode(x=x.x(), y=y.y(), tooltip=alt.Tooltip("hint:N"))


def _diagonal(rows: list[Row], x: Axis, y: Axis) -> Drawing:
    """The line where prediction equals measurement."""
    ends = _ends(rows)
    chart = alt.Chart(data([{"x": end, "y": end} for end in ends]))
    return alt.layer(chart.mark_line(strokeWidth=1, strokeDash=[5, 4], color=color("soft")).encode(x=x.x(), y=y.y()))


def _ends(rows: list[Row]) -> tuple[float, float]:
    values = [row[axis] for row in rows for axis in ("x", "y") if math.isfinite(row[axis])]
    return min(values), max(values)


def _scatter(rows: list[Row]) -> Drawing:
    """Latencies within bands of 5 and 10 %."""
    x, y = Axis("measured (ms)"), Axis("predicted (ms)")
    bands = [
        alt.Chart(data([{"x": e, "y": e * (1 - bound), "y2": e * (1 + bound)} for e in _ends(rows)]))
        .mark_area(color=color("blue"), opacity=0.10)
        .encode(x=x.x(), y=y.y(), y2="y2")
        for bound in BOUNDS
    ]
    return alt.layer(*bands, _diagonal(rows, x, y), _dots(rows, x, y))


def _errors(rows: list[Row]) -> Drawing:
    """Relative errors, in percent, over measured latency."""
    reach = max(12.0, *(1.1 * abs(row["error"]) for row in rows if math.isfinite(row["error"])))
    x = Axis("measured (ms)")
    y = Axis("relative error (%)", domain=[-reach, reach], nice=False)
    bounds = [{"error": sign * 100 * bound} for bound in (0.0, *BOUNDS) for sign in (-1, 1)]
    lines = (
        alt.Chart(data(bounds)).mark_rule(strokeWidth=1, strokeDash=[5, 4], color=color("grey")).encode(y=y.y("error"))
    )
    measured = [{**row, "low": -row["floor"]} for row in rows if math.isfinite(row["floor"])]
    floor = alt.Chart(data(measured)).mark_rule(strokeWidth=7, color=color("amber"), opacity=0.45)
    low = y.y("low")
    stems = alt.Chart(data([{**row, "zero": 0} for row in rows])).mark_rule(strokeWidth=1, color=color("blue"))
    dots = alt.Chart(data(rows)).mark_point(
        filled=True, opacity=1, size=60, color=color("blue"), stroke=color("card"), strokeWidth=1
    )
    return alt.layer(
        lines,
        floor.encode(x=x.x(), y=low, y2="floor"),
        stems.encode(x=x.x(), y=y.y("error"), y2="zero"),
        dots.encode(x=x.x(), y=y.y("error"), tooltip=alt.Tooltip("hint:N")),
    )
