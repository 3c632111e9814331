"""What a run prints at its end."""

import io
from pathlib import Path

import pandas as pd
from rich.console import Console

from autotailor.reporting import ReportInputs, print_front
from autotailor.search import costs
from autotailor.task.scores import AGREEMENT


def test_print_front_fits_80_columns(inputs: ReportInputs) -> None:
    stream = io.StringIO()
    timings = pd.read_csv(inputs.timings)
    console = Console(file=stream, width=80)
    summary = pd.read_csv(inputs.summary).drop(columns=["budget_ms", "budget_met"])
    print_front(summary, timings, Path("results/report.html"), console)
    text = stream.getvalue()
    for part in (
        "budget_02",
        "0.920",
        "0.948 ±0.007",
        "89.0",
        "91.4 ±0.5",
        "0.45",
        "10.3",
        "1.80",
        "finetune",
        "448.2",
    ):
        assert part in text
    assert "report: results/report.html" in text
    assert "…" not in text
    assert "nan" not in text


def test_budgets_are_printed_with_whether_they_are_met(inputs: ReportInputs) -> None:
    summary = pd.read_csv(inputs.summary)
    for table, marks in ((summary, 1), (summary.drop(columns=["budget_ms", "budget_met"]), 0)):
        stream = io.StringIO()
        print_front(table, console=Console(file=stream, width=80))
        assert stream.getvalue().count("0.380 ✗") == marks
        assert stream.getvalue().count("✓") == 2 * marks
        assert "…" not in stream.getvalue()


def test_a_run_without_a_device_prints_no_latency(counted_inputs: ReportInputs) -> None:
    stream = io.StringIO()
    print_front(pd.read_csv(counted_inputs.summary), console=Console(file=stream, width=80), cost=costs()["macs"])
    assert "MACs" in stream.getvalue()
    assert "10.3" in stream.getvalue()
    assert not {"latency", "ms"} & set(stream.getvalue().split())


def test_the_share_of_right_answers_is_called_what_it_is(inputs: ReportInputs) -> None:
    for more, word, other in (({}, "accuracy %", "agreement"), ({"score": AGREEMENT}, "agreement %", "accuracy")):
        stream = io.StringIO()
        print_front(pd.read_csv(inputs.summary), console=Console(file=stream, width=80), **more)  # type: ignore[arg-type]
        assert word in stream.getvalue()
        assert other not in stream.getvalue()
