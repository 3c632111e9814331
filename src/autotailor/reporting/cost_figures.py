"""Figures of the accuracy drops of modifications and of the latencies of operators."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from autotailor.reporting.comparison import LARGEST
from autotailor.reporting.derived_columns import featured
from autotailor.reporting.inputs import Tables
from autotailor.reporting.style import BLUE, GREY, INK, LIGHT, SERIES, canvas, house_style

PLACES = 14


def sensitivity_figure(tables: Tables) -> Figure:
    """Accuracy drop of each modification: a line for each variable, a dot for each choice, a colour for each kind.

    ``space.json`` says the kinds of variables; without that file all are of one kind.
    """
    table = tables.needed("sensitivity")
    table = table[(table["accuracy_drop"] != 0) | (table["standard_error"].fillna(0) != 0)]
    variables = list(dict.fromkeys(table["variable"]))
    known = {v["name"]: v["kind"] for v in (tables.document("space") or {}).get("variables", ())}
    kind_of = {variable: str(known.get(variable, "modification")) for variable in variables}
    kinds = list(dict.fromkeys(kind_of.values()))
    with house_style():
        figure = canvas(9.2, 1.1 + 0.4 * max(len(variables), 2))
        axes = figure.add_subplot()
        axes.axvline(0, color=GREY, linewidth=1)
        seen: set[str] = set()
        for line, variable in enumerate(variables):
            kind = kind_of[variable]
            _drops(
                axes,
                table[table["variable"] == variable],
                line,
                SERIES[kinds.index(kind) % len(SERIES)],
                kind,
                seen,
            )
        axes.set_yticks(range(len(variables)), variables)
        axes.set_ylim(len(variables) - 0.4, -0.7)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(f"{tables.score.name} drop (points), with one standard error; the label is the choice")
        axes.legend(loc="lower right", ncols=1)
        return figure


def _drops(axes: Axes, rows: pd.DataFrame, line: int, color: str, kind: str, seen: set[str]) -> None:
    """Dots of one variable."""
    axes.axhline(line, color="#f1f5f9", linewidth=6, zorder=0)
    rows = rows.sort_values("accuracy_drop")
    axes.errorbar(
        rows["accuracy_drop"],
        np.full(len(rows), line),
        xerr=rows["standard_error"].fillna(0),
        fmt="o",
        color=color,
        markersize=7,
        markeredgecolor="white",
        elinewidth=1.2,
        capsize=2,
        label=kind if kind not in seen else None,
    )
    seen.add(kind)
    for number, (_, row) in enumerate(rows.iterrows()):
        axes.annotate(
            f"{float(row['choice']):g}",
            (row["accuracy_drop"], line),
            xytext=(0, 5 if number % 2 == 0 else -12),
            textcoords="offset points",
            ha="center",
            fontsize=7.5,
            color=INK,
        )


def contributors_figure(tables: Tables) -> Figure:
    """Latency of SubNets by kind of operator, and of the slowest places."""
    table = tables.needed("contributors")
    names = list(dict.fromkeys(table["name"]))
    first = LARGEST if LARGEST in names else names[0]
    second = featured(tables)
    top = table[table["name"] == first].nlargest(PLACES, "latency_ms", keep="first")
    with house_style():
        heights = (0.8 + 0.42 * len(names), 0.8 + 0.36 * len(top))
        figure = canvas(9.2, sum(heights))
        figure.set_layout_engine("constrained", hspace=0.08)
        upper, lower = figure.subplots(2, 1, height_ratios=heights)
        _by_kind(upper, table, names)
        _by_place(lower, table, top, first, second if second in names and second != first else None)
        return figure


def _by_kind(axes: Axes, table: pd.DataFrame, names: list[str]) -> None:
    """Stacked bars: one for each SubNet, one colour for each kind."""
    sums = table.pivot_table(index="name", columns="kind", values="latency_ms", aggfunc="sum", fill_value=0.0).loc[
        names
    ]
    kinds = list(sums.sum().sort_values(ascending=False, kind="stable").index)
    shown, rest = kinds[: len(SERIES) - 1], kinds[len(SERIES) - 1 :]
    if rest:
        sums = sums.assign(**{"other": sums[rest].sum(axis=1)})
    left = np.zeros(len(names))
    for number, kind in enumerate([*shown, *(["other"] if rest else [])]):
        color = LIGHT if kind == "other" else SERIES[number]
        axes.barh(range(len(names)), sums[kind], left=left, height=0.62, color=color, label=kind)
        left += sums[kind].to_numpy(dtype=np.float64)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("predicted latency (ms)")
    axes.set_title("By kind of operator")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _by_place(axes: Axes, table: pd.DataFrame, top: pd.DataFrame, first: str, second: str | None) -> None:
    """The largest SubNet's slowest places, and the same places in another SubNet."""
    lines = np.arange(len(top))
    labels = [f"{place}  ({kind})" for place, kind in zip(top["place"], top["kind"], strict=True)]
    axes.barh(lines - (0.2 if second else 0), top["latency_ms"], height=0.38, color=LIGHT, label=first)
    if second:
        other = table[table["name"] == second].set_index("place")["latency_ms"]
        axes.barh(lines + 0.2, [other.get(p, 0.0) for p in top["place"]], height=0.38, color=BLUE, label=second)
    axes.set_yticks(lines, labels, fontsize=8.5)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("latency in the LUT (ms)")
    axes.set_title(f"The slowest places of {first}")
    axes.legend(loc="lower right")
