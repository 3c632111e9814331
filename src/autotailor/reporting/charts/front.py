"""Accuracy over the cost: the predicted front, the exported SubNets, the original, and scaled networks.

The page's script sets the parameters ``picked``, the id of the SubNet that a ring is drawn around, and ``budget``.
"""

import math
from dataclasses import dataclass
from typing import Any

import altair as alt

from autotailor.reporting.charts.marks import Axis, Drawing, Row, data, error_bars, interval
from autotailor.reporting.comparison import ORIGINAL
from autotailor.reporting.derived_columns import scaled_means
from autotailor.reporting.inputs import Tables
from autotailor.reporting.page.chart import Part
from autotailor.reporting.page.palette import color

HEIGHT = 400
NAMED = 8
"""Exported SubNets whose names are written beside their points at most."""
STAR = "M0,-1 L0.24,-0.32 L0.95,-0.31 L0.38,0.12 L0.59,0.81 L0,0.4 L-0.59,0.81 L-0.38,0.12 L-0.95,-0.31 L-0.24,-0.32 Z"


@dataclass(frozen=True)
class Series:
    """A kind of point: its name in the legend, its shape, its size in square pixels, and its colours."""

    name: str
    shape: str
    size: int
    fill: str
    stroke: str


FRONT = Series("predicted front", "circle", 20, "grey", "grey")
EVALUATED = Series("SubNet, evaluated", "circle", 22, "card", "grey")
SCALED = Series("scaled network", "square", 60, "green", "card")
PREDICTED = Series("SubNet, predicted", "circle", 55, "card", "blue")
MEASURED = Series("SubNet, measured", "circle", 100, "blue", "card")
MISSED = Series("misses its budget", "triangle-down", 110, "amber", "ink")
WHOLE = Series("your network", STAR, 560, "orange", "card")
SERIES = (FRONT, EVALUATED, SCALED, PREDICTED, MEASURED, MISSED, WHOLE)


def front(tables: Tables) -> tuple[Part, ...]:
    """The chart of the front."""
    cost, score = tables.cost, tables.score
    x = Axis(f"{cost.title} ({cost.unit})", nice=True)
    y = Axis(f"{score.name}, {score.mean} as predicted (%)" if score.mean_name else f"{score.name} (%)")
    points = _points(tables)
    named = [row for row in points if row["series"] in (MEASURED.name, MISSED.name)]
    layers: list[Any] = [
        _half(tables, x),
        alt.Chart(data(_of(points, FRONT))).mark_line(strokeWidth=1.2, color=color("grey")).encode(x=x.x(), y=y.y()),
        *_scaled_line(tables, x, y),
        *_joined(tables, x, y),
        *(error_bars(_of(points, s), x, y, s.fill) for s in (MEASURED, MISSED, WHOLE, SCALED) if _of(points, s)),
        _symbols(points, x, y),
        *([_names(_together(named, tables), x, y)] if len(named) <= NAMED else []),
        _ring(points, x, y),
    ]
    chart = alt.layer(*layers).add_params(alt.param(name="picked", value=""), alt.param(name="budget", value=None))
    return (Part(chart.properties(height=HEIGHT)),)


def _of(points: list[Row], series: Series) -> list[Row]:
    return [row for row in points if row["series"] == series.name]


def _points(tables: Tables) -> list[Row]:
    """All points, those in front last."""
    cost, compare = tables.cost, tables.table("compare")
    summary, reached, missed = tables.needed("summary"), tables.compared.cost_column, tables.compared.missed
    subnets = summary[summary.index != ORIGINAL]
    rows: list[Row] = [
        _point(FRONT, str(id_), row[cost.expected], row["accuracy_predicted"], tables)
        for id_, row in tables.drawn_front().iterrows()
    ]
    for id_, row in tables.evaluated().iterrows():
        error = float(row.get("posterior_standard_error", math.nan))
        rows.append(_point(EVALUATED, str(id_), row[cost.expected], row["accuracy_posterior"], tables, error=error))
    for _, row in compare.iterrows() if compare is not None else ():
        error = float(row.get("accuracy_standard_error", math.nan))
        rows.append(_point(SCALED, str(row["name"]), row[cost.reached], row["accuracy_measured"], tables, error=error))
    for name, row in subnets.iterrows():
        rows.append(_point(PREDICTED, str(name), row[cost.expected], row["accuracy_predicted"], tables))
    for name, row in summary.iterrows():
        series = WHOLE if name == ORIGINAL else MISSED if name in missed else MEASURED
        errors = {"error": row["accuracy_standard_error"], "x_error": row.get("latency_ms_standard_error", math.nan)}
        rows.append(_point(series, str(name), row[reached], row["accuracy_measured"], tables, **errors))
    return [row for row in rows if math.isfinite(row["x"]) and math.isfinite(row["y"])]


def _point(
    series: Series, name: str, x: float, y: float, tables: Tables, error: float = math.nan, x_error: float = math.nan
) -> Row:
    """One point, with what is said of it where a person points at it."""
    unit = tables.cost.unit
    about = ["" if math.isnan(e) else f" ±{e:.2g}" for e in (float(x_error), float(error))]
    said = tables.score.mean if series in (FRONT, EVALUATED, PREDICTED) else tables.score.name
    hint = f"{name}: {series.name}\n{x:.4g}{about[0]} {unit}\n{y:.2f}{about[1]} % {said}"
    row = {"id": name, "series": series.name, "x": float(x), "y": float(y), "hint": hint}
    return row | interval(float(x), float(x_error), "x") | interval(float(y), float(error), "y")


def _symbols(points: list[Row], x: Axis, y: Axis) -> Drawing:
    shown = [series for series in SERIES if _of(points, series)]
    names = [series.name for series in shown]

    def scale(values: list[Any]) -> alt.Scale:
        return alt.Scale(type="ordinal", domain=names, range=values)

    return (
        alt.Chart(data(points), name="points")
        .mark_point(opacity=1, strokeWidth=1.4, cursor="pointer")
        .encode(
            x=x.x(),
            y=y.y(),
            fill=alt.Fill("series:N", scale=scale([color(s.fill) for s in shown])),
            stroke=alt.Stroke("series:N", scale=scale([color(s.stroke) for s in shown])),
            shape=alt.Shape("series:N", scale=scale([s.shape for s in shown])),
            size=alt.Size("series:N", scale=scale([s.size for s in shown])),
            tooltip=alt.Tooltip("hint:N"),
        )
    )


def _joined(tables: Tables, x: Axis, y: Axis) -> list[Any]:
    """Lines from predictions to measurements, and from polished SubNets to what they had with inherited weights."""
    reached, predicted = tables.compared.cost_column, tables.cost.expected
    rows, before = [], []
    for name, row in tables.needed("summary").iterrows():
        if name == ORIGINAL:
            continue
        at = {"x": row[reached], "y": row["accuracy_measured"]}
        rows.append({**at, "x2": row[predicted], "y2": row["accuracy_predicted"]})
        if row["weights"] == "polished":
            hint = f"{name} with inherited weights\n{row['accuracy_inherited']:.2f} % {tables.score.name}"
            before.append({**at, "y2": row["accuracy_inherited"], "hint": hint})
    lines = alt.Chart(data(rows)).mark_rule(strokeWidth=0.8, color=color("blue"), opacity=0.55)
    layers: list[Any] = [lines.encode(x=x.x(), y=y.y(), x2="x2", y2="y2")]
    if before:
        chart = alt.Chart(data(before))
        dotted = chart.mark_rule(strokeWidth=1.2, strokeDash=[2, 3], color=color("blue")).encode(
            x=x.x(), y=y.y(), y2="y2"
        )
        dashes = chart.mark_tick(thickness=2, size=13, orient="horizontal", color=color("blue"))
        height = y.y("y2")
        layers += [dotted, dashes.encode(x=x.x(), y=height, tooltip=alt.Tooltip("hint:N"))]
    return layers


def _scaled_line(tables: Tables, x: Axis, y: Axis) -> list[Any]:
    """Through the means of uniformly scaled networks."""
    compare = tables.table("compare")
    if compare is None:
        return []
    means = scaled_means(compare, tables.cost.reached)
    rows = [{"x": at, "y": value} for at, value in means.itertuples(index=False)]
    return [
        alt.Chart(data(rows)).mark_line(strokeWidth=1, strokeDash=[5, 4], color=color("green")).encode(x=x.x(), y=y.y())
    ]


def _together(rows: list[Row], tables: Tables) -> list[Row]:
    """One row for each SubNet, with the names of all its exports: names at one point would cover each other."""
    names = {group[0]: group for group in tables.compared.repeated}
    later = {name for group in names.values() for name in group[1:]}
    return [row | {"id": ", ".join(names.get(row["id"], (row["id"],)))} for row in rows if row["id"] not in later]


def _names(rows: list[Row], x: Axis, y: Axis) -> Drawing:
    chart = alt.Chart(data(rows)).mark_text(align="left", dx=9, dy=11, fontSize=11, color=color("ink"))
    return chart.encode(x=x.x(), y=y.y(), text="id:N")


def _half(tables: Tables, x: Axis) -> Drawing:
    """Half of the reference's cost, and the budget that a person has set."""
    half = tables.number("summary", tables.compared.reference, tables.compared.cost_column) / 2
    chart = alt.Chart(data([{"x": half, "text": f"half the {tables.cost.title}"}] if math.isfinite(half) else []))
    rule = chart.mark_rule(strokeWidth=1, strokeDash=[2, 4], color=color("soft")).encode(x=x.x())
    text = chart.mark_text(align="left", baseline="bottom", dx=4, dy=-4, fontSize=11, color=color("soft"))
    budget = alt.Chart(data([{}])).transform_calculate(x="budget").transform_filter("isValid(datum.x)")
    bar = budget.mark_rule(strokeWidth=2, color=color("accent"), opacity=0.7).encode(x=x.x())
    return alt.layer(rule, text.encode(x=x.x(), y=alt.value(HEIGHT), text="text:N"), bar)


def _ring(points: list[Row], x: Axis, y: Axis) -> Drawing:
    """Around the points of the SubNet that is picked."""
    chart = alt.Chart(data([{key: row[key] for key in ("id", "x", "y")} for row in points]))
    ring = chart.transform_filter("datum.id === picked").mark_point(
        shape="circle", size=330, strokeWidth=2.5, color=color("accent"), opacity=1
    )
    return ring.encode(x=x.x(), y=y.y())
