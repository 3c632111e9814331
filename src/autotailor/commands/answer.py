"""How commands answer: one JSON object on standard output and nothing else there, or tables for people."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any

from autotailor.commands.terminal import given_path, say, terminal
from autotailor.ir.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from autotailor.runs.exits import ExitsChoice
    from autotailor.runs.known_metric import Estimate

SCHEMA = 1
NARROWEST = 80
"""Characters of a table's width at least."""
MOST_PLACES = 6
"""Decimal places that are shown at most."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that all questions to a finished run have."""
    parser.add_argument("folder", type=given_path, metavar="RUN", help="folder of a finished run, results/MODEL/DEVICE")
    parser.add_argument("--json", action="store_true", help="print one JSON object; progress goes to standard error")


@contextmanager
def only_the_answer(options: argparse.Namespace) -> Iterator[None]:
    """With ``--json``, sends whatever the block prints to standard error, libraries written in C included."""
    if not options.json:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def print_json(content: Mapping[str, Any]) -> None:
    """Prints a JSON object with its ``schema_version`` first."""
    print(json.dumps({"schema_version": SCHEMA, **content}, indent=2, allow_nan=False))


def table(title: str, *headings: str, numbers: tuple[str, ...] = ()) -> Table:
    """A table for people.

    Args:
        title: above the table; it becomes printable.
        headings: of the columns.
        numbers: headings of columns whose cells stand at the right.
    """
    from rich.markup import escape
    from rich.table import Table

    made = Table(title=escape(printable(title)), title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in headings:
        justify = "right" if heading in numbers else "left"
        made.add_column(heading, overflow="fold", justify=justify, no_wrap=heading != headings[-1])  # type: ignore[arg-type]
    return made


def console() -> Console:
    """Where tables of ``estimates`` are printed: wide enough for all digits, even where a terminal is narrower."""
    return terminal(least=NARROWEST)


def estimates(title: str, predicted: Mapping[str, Estimate], measured: Mapping[str, Estimate]) -> Table:
    """A table of predictions by metric, with the measurements beside them."""
    made = table(title, "metric", "predicted", "measured", "unit", numbers=("predicted", "measured"))
    for name, estimate in predicted.items():
        own = measured.get(name)
        made.add_row(
            name,
            number(estimate.value, estimate.standard_error),
            number(own.value, own.standard_error) if own else "",
            estimate.unit,
        )
    return made


def show_exits(found: ExitsChoice) -> None:
    """Prints what is chosen for a budget of the expected or the worst cost, and where pictures leave."""
    title = f"{found.name} with exits" if found.thresholds else f"{found.name}, whose exits would gain nothing"
    console().print(estimates(title, found.predicted, {}))
    for name, share in found.leave.items():
        limit = found.thresholds.get(name)
        sure = "" if limit is None else f", where the exit is {limit:.2f} sure"
        say(f"{share:.0%} of the test pictures leave at {name}{sure}")


def number(value: float | None, error: float | None = None) -> str:
    """A number with four significant digits, or with its standard error to the error's two; empty without a number."""
    if value is None:
        return ""
    if not error:
        return f"{value:.4g}"
    places = min(max(1 - math.floor(math.log10(error)), 0), MOST_PLACES)
    return f"{value:.{places}f} ±{error:.{places}f}"
