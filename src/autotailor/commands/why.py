"""``python -m autotailor why RUN NAME``: what led to an export, from the front to its measurement."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from autotailor.commands import answer

if TYPE_CHECKING:
    from autotailor.reporting.inputs import ReportInputs, Tables
    from autotailor.reporting.steps import Step
    from autotailor.runs.folder import RunFolder

READ = {
    "pareto": "pareto.csv",
    "candidates": "candidates.csv",
    "confirmed": "confirmed.csv",
    "chosen": "polish.json",
    "summary": "summary.csv",
    "configuration": "configuration.json",
}
"""Artifacts that the run must have, by their names in ReportInputs; ``polish.csv`` is read where it is."""


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``why`` to the commands."""
    parser = commands.add_parser(
        "why",
        help="why a finished run exported a SubNet",
        description="Follows an export of a finished run from the predicted front over the candidates of its budget, "
        "the measurement before polishing and the race to what was measured of its file, each number with the "
        "artifact that holds it. The report shows the same below its exports. Nothing runs again.",
    )
    answer.add_arguments(parser)
    parser.add_argument("name", metavar="NAME", help="the export, such as budget_01 or largest")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Prints the steps that led to an export.

    Raises:
        AutoTailorError: the run is not finished or not of one piece, or has no such export.
    """
    with answer.only_the_answer(options):
        from autotailor.reporting.inputs import Tables
        from autotailor.reporting.steps import steps
        from autotailor.runs.folder import open_folder

        folder = open_folder(options.folder, tuple(READ.values()))
        tables = Tables(_inputs(folder))
        path = steps(tables, options.name)
    if options.json:
        told = [
            {"title": step.title, "said": step.said, "facts": [fact.to_dict(tables) for fact in step.facts]}
            for step in path
        ]
        of = {"model": folder.model, "device": folder.device}
        answer.print_json({"run": of, "export": options.name, "steps": told})
    else:
        _show(options.name, path, tables)


def _inputs(folder: RunFolder) -> ReportInputs:
    """The artifacts of a run that hold its steps; those that the run does not have are left out."""
    from autotailor.reporting.inputs import ReportInputs

    paths = {name: folder.file(file) for name, file in {**READ, "polish": "polish.csv"}.items()}
    return ReportInputs(folder.model, folder.device, **{name: path for name, path in paths.items() if path.is_file()})


def _show(name: str, path: tuple[Step, ...], tables: Tables) -> None:
    """Prints each step as a sentence and a table of its numbers."""
    console = answer.console()
    subnet = str(tables.needed("summary").loc[name, "subnet"])
    console.print(f"{name} is SubNet {subnet}.\n", highlight=False)
    for number, step in enumerate(path, 1):
        console.print(f"{number}. {step.title}: {step.said}", highlight=False, markup=False)
        table = answer.table("", "", "value", "unit", ", ".join(map(tables.file, step.files)), numbers=("value",))
        for fact in (each.to_dict(tables) for each in step.facts):
            table.add_row(f"   {fact['name']}", _text(fact), fact["unit"] or "", fact["source"]["column"])
        if step.facts:
            console.print(table)
        console.print()


def _text(fact: Mapping[str, Any]) -> str:
    """A value as people read it; counts with all of their digits."""
    value = fact["value"]
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if value.is_integer() else answer.number(value, fact["standard_error"])
