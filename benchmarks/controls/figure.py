"""The figure of one model: accuracy of each method over the budgets."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from controls.parts import OF_BUDGET, ORIGINAL, TRAINED_ON
from controls.style import GREY, SERIES, canvas, house_style

LINES = {ORIGINAL: "-", TRAINED_ON: "--"}


def front_figure(model: str, table: pd.DataFrame) -> Figure:
    """Mean accuracy over seeds with one standard error, one line for each method.

    Args:
        model: for the title.
        table: rows of one model.
    """
    with house_style():
        figure = canvas(9.2, 5.0)
        axes = figure.add_subplot()
        for method, style in LINES.items():
            rows = table[table["method"] == method]
            if len(rows):
                axes.axhline(rows["accuracy"].mean(), color=GREY, linewidth=1.2, linestyle=style, label=method)
        for method, color in zip(OF_BUDGET, SERIES, strict=False):
            means = points(table[table["method"] == method])
            if len(means):
                axes.errorbar(
                    means.index, means["accuracy"], yerr=means["error"], fmt="-o", color=color, markersize=5,
                    linewidth=1.4, capsize=2, label=method,
                )  # fmt: skip
        axes.set(xlabel="budget (% of the original's latency)", ylabel="accuracy (%)")
        seeds = sorted(table["seed"].unique())
        axes.set_title(f"{model}: {'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}, test set")
        axes.legend(loc="lower right")
        return figure


def points(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracy and its standard error by budget; seeds are independent draws."""
    groups = rows.groupby("budget")
    error = groups["standard_error"].apply(lambda values: float(np.sqrt(np.square(values).sum())) / len(values))
    return pd.DataFrame({"accuracy": groups["accuracy"].mean(), "error": error})
