"""Fills ``page.md`` with the facts of an export, and writes ``README.md`` beside the export's files."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from autotailor.artifacts import write_text
from autotailor.ir.errors import printable_value
from autotailor.reporting.card.facts import Facts, Row, read_facts

CARD = "README.md"


def write_card(
    folder: Path,
    name: str,
    configuration: Mapping[str, Any],
    rows: Mapping[str, Row],
    *,
    path: Path | None = None,
    asked: str | None = None,
    pair: tuple[str, str] | None = None,
    exits: Mapping[str, Any] | None = None,
) -> None:
    """Writes the card of an export; an interrupted write leaves no file.

    Args:
        folder: of the export's files.
        name: of the export in ``summary.csv``.
        configuration: of the run.
        rows: of ``summary.csv`` by name.
        path: of the card; ``README.md`` in the folder when None.
        asked: the budget in the user's words; None finds it in the configuration.
        pair: model and device as the run's folder names them; None takes the names that their configurations give.
        exits: the content of the run's ``exits.json``, where it has early exits.

    Raises:
        ReportError: see ``read_facts``.
    """
    facts = read_facts(folder, name, configuration, rows, asked, pair)
    write_text(path or folder / CARD, render(replace(facts, exits=exits)))


def render(facts: Facts) -> str:
    """The text of a card."""
    environment = Environment(
        loader=PackageLoader("autotailor.reporting.card", "."),
        autoescape=False,
        undefined=StrictUndefined,
        finalize=printable_value,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["number"] = number
    environment.filters["count"] = count
    environment.filters["blob"] = lambda name: "_".join(name.split())  # as the runtime ncnn names its blobs
    page = environment.get_template("page.md")
    return page.render(
        facts=facts,
        configuration=facts.configuration,
        device=facts.configuration["device"],
        preparation=facts.preparation,
        subnet=facts.subnet,
        row=facts.row,
        original=facts.original,
    )


def number(value: float | None, digits: int = 4, error: float | None = None) -> str:
    """A number with some significant digits and its standard error, or a dash where there is none."""
    if value is None:
        return "–"
    return f"{value:.{digits}g}" if error is None else f"{value:.{digits}g} ± {error:.2g}"


def count(value: float, unit: str) -> str:
    """A number with its unit in the singular or the plural: ``1 thread``, ``2 threads``."""
    return f"{value:g} {unit}" if value == 1 else f"{value:g} {unit}s"
