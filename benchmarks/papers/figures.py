"""The figures of the methods: accuracy against latency, and what each costs."""

from __future__ import annotations

import pandas as pd
from controls.style import GREY, SERIES, canvas, house_style
from matplotlib.figure import Figure

from autotailor.search import Cost

DEEPEST = 35.0
"""Points below the given network at which the figure ends; what lies deeper leaves it, and is in the table."""


def fronts(title: str, rows: pd.DataFrame, given: float, cost: Cost) -> Figure:
    """Accuracy on the test set against predicted latency, or MACs, one line for each method (the figures 13 and 14).

    Args:
        title: of the figure.
        rows: as ``answers.table`` makes them; seeds are averaged.
        given: percent of the given network.
        cost: what budgets limit.
    """
    with house_style():
        figure, columns = canvas(9.2, 4.6), ("inherited", "polished")
        for axes, name in zip(figure.subplots(1, 2, sharey=True), columns, strict=True):
            column = f"{name}_test"
            axes.axhline(given, color=GREY, linewidth=1.2, label="the given network")
            for method, color in zip(rows["method"].unique(), SERIES, strict=False):
                known = rows[rows["method"] == method].dropna(subset=[column])
                means = known.groupby("budget")[["latency", column]].mean()
                axes.plot(means["latency"], means[column], "-o", color=color, markersize=4, linewidth=1.4, label=method)
            limited = "latency by the table" if cost.is_measured else cost.title
            axes.set(xlabel=f"{limited} (% of the given network)", title=f"{title}, {name}")
            axes.set_ylim(bottom=max(0.0, given - DEEPEST))
        figure.axes[0].set_ylabel("accuracy (%)")
        figure.axes[1].legend(loc="lower right")
        return figure


def costs(title: str, rows: pd.DataFrame) -> Figure:
    """Images of training, operators and evaluated SubNets of each method (the paper's figures 15 and 16)."""
    shown = (("images", "training images"), ("operators", "operators to measure"), ("lines", "lines of configuration"))
    with house_style():
        figure = canvas(9.2, 2.8)
        for axes, (column, name) in zip(figure.subplots(1, len(shown), sharey=True), shown, strict=True):
            kept = rows.iloc[::-1]
            bars = axes.barh(kept["method"], kept[column], color=SERIES[0])
            axes.bar_label(bars, labels=[f"{value:,.0f}" for value in kept[column]], padding=3, fontsize=8)
            axes.set_title(name)
            axes.margins(x=0.25)
        figure.suptitle(title, fontsize=10.5)
        return figure
