"""What each modification costs: a line for each variable, a dot for each choice, a colour for each kind."""

import altair as alt

from autotailor.reporting.charts.marks import Axis, Row, data, interval
from autotailor.reporting.inputs import Tables
from autotailor.reporting.page.chart import Part
from autotailor.reporting.page.palette import SERIES, color

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
LINE = 28
"""Pixels of a variable."""


def sensitivity(tables: Tables) -> tuple[Part, ...]:
    """The chart of the drops, or of divergences where these judge.

    ``space.json`` says the kinds of variables; without that file all are of one kind.
    """
    table = tables.needed("sensitivity")
    is_apart = tables.has_divergences
    numbers = table[["accuracy_drop", "standard_error", "divergence"]].fillna(0)
    table = table[(numbers != 0).any(axis=1)]
    kind_of = {v["name"]: v["kind"] for v in (tables.document("space") or {}).get("variables", ())}
    variables = list(dict.fromkeys(table["variable"]))
    cost, error_of = ("divergence", "divergence_standard_error") if is_apart else ("accuracy_drop", "standard_error")
    rows: list[Row] = []
    for row in table.to_dict("records"):
        drop, error, choice = row["accuracy_drop"], row["standard_error"], str(row["choice"])
        kind = str(kind_of.get(row["variable"], "modification"))
        below = sum(other["variable"] == row["variable"] for other in rows) % 2
        at = {"variable": row["variable"], "choice": choice, "kind": kind, "x": row[cost], "below": below}
        apart = f"divergence {row[cost]:.3f} ±{row[error_of]:.3f}\n" if is_apart else ""
        hint = f"{row['variable']} = {choice}\n{apart}{drop:+.2f} ±{error:.2f} points"
        rows.append(at | interval(row[cost], row[error_of], "x") | {"hint": hint})
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    colors = [color(SERIES[number % len(SERIES)]) for number in range(len(kinds))]
    shapes = [SHAPES[number % len(SHAPES)] for number in range(len(kinds))]
    x = Axis("divergence" if is_apart else f"{tables.score.mean} drop (points)", zero=True)
    y = alt.Y("variable:N", title=None, sort=variables, axis=alt.Axis(grid=True, domain=False, ticks=False))
    encoded = alt.Color("kind:N", scale=alt.Scale(domain=kinds, range=colors))
    chart = alt.Chart(data(rows))
    bars = chart.transform_filter("isValid(datum.x_low)").mark_rule(strokeWidth=1.2, opacity=0.7)
    dots = chart.mark_point(filled=True, opacity=1, size=70, stroke=color("card"), strokeWidth=1)
    names = [
        chart.transform_filter(f"datum.below === {below}")
        .mark_text(dy=-10 + 20 * below, fontSize=10, color=color("soft"), opacity=alt.ExprRef("width < 300 ? 0 : 1"))
        .encode(x=x.x(), y=y, text="choice:N")
        for below in (0, 1)
    ]
    layers = alt.layer(
        bars.encode(x=x.x("x_low"), x2="x_high", y=y, color=encoded),
        dots.encode(
            x=x.x(),
            y=y,
            color=encoded,
            shape=alt.Shape("kind:N", scale=alt.Scale(domain=kinds, range=shapes)),
            tooltip=alt.Tooltip("hint:N"),
        ),
        *names,
    )
    return (Part(layers.properties(height=LINE * max(len(variables), 2))),)
