"""The table that a run prints at its end."""

import math
from pathlib import Path
from typing import Any

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from autotailor.search import LATENCY, Cost
from autotailor.task.scores import ACCURACY, Score


def print_front(
    summary: pd.DataFrame,
    timings: pd.DataFrame | None = None,
    report: Path | None = None,
    console: Console | None = None,
    score: Score = ACCURACY,
    cost: Cost = LATENCY,
) -> None:
    """Prints the front, the seconds of each stage, and the path of the report.

    Args:
        summary: ``summary.csv``.
        timings: columns stage and seconds, or None.
        report: path of ``report.html``, or None.
        console: where to print; standard output when None.
        score: the name of the share of right answers.
        cost: what budgets limit.
    """
    console = console or Console()
    console.print(_front(summary, score, cost))
    if timings is not None and len(timings):
        console.print(_stages(timings))
    if report is not None:
        console.print(f"report: {report}", soft_wrap=True, highlight=False, markup=False)


def _front(summary: pd.DataFrame, score: Score, cost: Cost) -> Table:
    """The table of the exported SubNets, 80 columns wide.

    Where budgets were measured, they stand in the place of parameters and MACs.
    """
    table = Table(title="The front", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("\nSubNet", no_wrap=True)
    has_budgets = "budget_met" in summary and bool(summary["budget_met"].notna().any())
    latencies = ("latency ms\nexpected", "\nmeasured") if cost.is_measured else ()
    budgets = ("budget\nms met",) if has_budgets else ()
    for heading in (*latencies, *budgets, f"{score.name} %\ninherited", "\nmeasured"):
        table.add_column(heading, justify="right", no_wrap=True)
    counts = () if has_budgets else ("params\nM", "MACs\nM")
    for heading in (*counts, "size\nMB"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in summary.to_dict("records"):
        table.add_row(
            str(row["name"]),
            *(_latencies(row) if cost.is_measured else ()),
            *((_budget(row),) if has_budgets else ()),
            _number(row["accuracy_inherited"], 1),
            _number(row["accuracy_measured"], 1, row["accuracy_standard_error"]),
            *(() if has_budgets else (_number(row["parameters_m"], 2), _number(row["macs_m"], 1))),
            _number(row["size_mb"], 2),
        )
    return table


def _budget(row: dict[Any, Any]) -> str:
    """The budget of a row of ``summary.csv``, and whether it is met; a dash for a row without a budget."""
    mark = {"True": "✓", "False": "✗"}.get(str(row["budget_met"]), " ")
    return _number(row["budget_ms"], 3) + (f" {mark}" if mark.strip() else "")


def _latencies(row: dict[Any, Any]) -> tuple[str, str]:
    """Expected and measured latency of a row of ``summary.csv``."""
    measured = _number(row["latency_ms_measured"], 3, row["latency_ms_standard_error"])
    return _number(row.get("latency_ms_expected", row["latency_ms_predicted"]), 3), measured


def _stages(timings: pd.DataFrame) -> Table:
    total = float(timings["seconds"].sum())
    table = Table(title="Where the time went", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("stage")
    table.add_column("seconds", justify="right")
    table.add_column("share", justify="right")
    for row in timings.to_dict("records"):
        seconds = float(row["seconds"])
        table.add_row(str(row["stage"]), f"{seconds:.1f}", f"{seconds / total:.0%}" if total else "")
    table.add_section()
    table.add_row("all", f"{total:.1f}", "")
    return table


def _number(value: Any, digits: int, error: Any = None) -> str:
    """A number, with its standard error if that is known; a dash where there is no number."""
    if value is None or math.isnan(value):
        return "–"
    text = f"{value:.{digits}f}"
    return text if error is None or math.isnan(error) else f"{text} ±{error:.{digits}f}"
