"""Prints the tables of ``fronts.py``: means over seeds."""

from __future__ import annotations

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from controls.parts import ALONE, METHODS
from controls.table import COUNTS

WIDTH = 160
"""Letters of a line where the output is a file."""


def show(table: pd.DataFrame, totals: pd.DataFrame) -> None:
    """Prints losses and costs of each model."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    for model, of_model in table.groupby("model", sort=False):
        title = f"{model}: points below the original network, and its accuracy (%); test set, seeds in brackets"
        console.print(losses(of_model, title))
        console.print(training(totals[totals["model"] == model], f"{model}: images shown in training"))
        unknown = of_model[of_model["latency"].isna() & (of_model["operators_known"] != "")]
        for what, known in unknown.groupby("what")["operators_known"].first().items():
            console.print(f"{what}: the LUT knows {known} operators, so that the latency is not predicted")


def losses(table: pd.DataFrame, title: str) -> Table:
    """One row for each method, one column for each budget: mean loss over seeds, its error, and how many seeds."""
    shown = Table(title=title)
    shown.add_column("")
    budgets = sorted(table["budget"].unique())
    for budget in budgets:
        shown.add_column(f"{budget} %", justify="right")
    for method in METHODS:
        of_method = table[table["method"] == method]
        if len(of_method):
            shown.add_row(method, *(cell(of_method[of_method["budget"] == budget]) for budget in budgets))
    return shown


def cell(rows: pd.DataFrame) -> str:
    """Mean loss of the rows, with its standard error (seeds are independent draws); the mean accuracy below."""
    if rows.empty:
        return ""
    error = float(np.sqrt(np.square(rows["loss_error"]).sum())) / len(rows)
    mark = "!" if rows["lr_at_end"].any() else ""
    return f"{rows['loss'].mean():+.2f} ± {error:.2f}{mark} ({len(rows)})\n{rows['accuracy'].mean():.1f}"


def training(totals: pd.DataFrame, title: str) -> Table:
    """One row for each method: images for each network, and for k budgets with the share of method (3)."""
    shown = Table("", "shared", "each network", *(f"{count} budgets" for count in COUNTS), title=title)
    means = totals.groupby("method", sort=False)[["shared", "each", *(f"total_{count}" for count in COUNTS)]].mean()
    for method, row in means.iterrows():
        cells = []
        for count in COUNTS:
            total = row[f"total_{count}"]
            share = f" ({total / means.loc[ALONE, f'total_{count}']:.0%} of alone)" if ALONE in means.index else ""
            cells.append(f"{total:,.0f}{share}")
        shown.add_row(str(method), f"{row['shared']:,.0f}", f"{row['each']:,.0f}", *cells)
    return shown
