"""Fills ``templates/report.html``, and writes ``report.html``: a single file that needs no other files.

The template has the columns of each table; computed numbers stand in ``derived_columns.py``.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from autotailor.artifacts import write_text
from autotailor.ir.errors import printable_value
from autotailor.reporting import accuracy_intervals, breakdown, comparison, derived_columns
from autotailor.reporting.charts import contributors, front, predictors, sensitivity
from autotailor.reporting.explorer import explorer
from autotailor.reporting.inputs import ReportInputs, Tables
from autotailor.reporting.marks import ABSENT, Marker
from autotailor.reporting.page import chart
from autotailor.reporting.page.palette import style_variables
from autotailor.reporting.sentence import answer
from autotailor.reporting.steps import steps
from autotailor.search.metrics import METRICS, PEAK_MEMORY

FIGURES: Mapping[str, tuple[str, Callable[[Tables], tuple[chart.Part, ...]]]] = {
    "front": ("pareto", front.front),
    "latency": ("validation", predictors.latency),
    "accuracy": ("accuracy_validation", predictors.accuracy),
    "sensitivity": ("sensitivity", sensitivity.sensitivity),
    "contributors": ("contributors", contributors.contributors),
}
"""Maps the name of each figure to the table that the figure needs and to the function that says what it shows."""


def build_report(inputs: ReportInputs, path: Path) -> None:
    """Writes the report; an interrupted write leaves no file.

    Raises:
        ReportError: an artifact cannot be read or lacks a column.
    """
    write_text(path, render(inputs))


def write_figure(name: str, inputs: ReportInputs, path: Path) -> None:
    """Writes one figure (a name of FIGURES) as SVG; a placeholder where the figure's table is missing or empty."""
    tables = Tables(inputs)
    needed, parts = FIGURES[name]
    write_text(path, chart.standalone((chart.absent(),) if tables.table(needed) is None else parts(tables)))


def render(inputs: ReportInputs) -> str:
    """The report's HTML."""
    tables = Tables(inputs)
    marker = Marker(tables)
    compared = tables.compared
    template = _environment().get_template("report.html")
    return template.render(
        inputs=inputs,
        tables=tables,
        cell=marker.cell,
        derived=marker.derived,
        json=marker.json,
        said=marker.said,
        constant=marker.constant,
        has=lambda name: bool(tables.table(name) is not None if name in tables.names else tables.document(name)),
        file=tables.file,
        figure=lambda name, alt: chart.embedded(name, FIGURES[name][1](tables), alt),
        rows=lambda name: list(tables.needed(name).index),
        reference=compared.reference,
        featured=compared.featured,
        comparison=compared,
        fact=marker.fact,
        ways={row: steps(tables, row) for row in tables.needed("summary").index if row != comparison.ORIGINAL},
        answer=answer(tables.needed("summary"), inputs.device, tables.score, tables.cost),
        featured_label=_featured_label(tables),
        time=_time(tables),
        explorer=chart.json_text(explorer(tables)),
        configuration=_configuration(tables),
        promise_broken=derived_columns.promise_broken(tables),
        promise_cause=derived_columns.promise_cause(tables),
        accuracy_missed=[] if tables.score.mean_name else accuracy_intervals.broken(compared.summary),
        original=comparison.ORIGINAL,
        score=tables.score,
        absent=ABSENT,
        Markup=Markup,
        cost=tables.cost,
        counted=[spec for spec in METRICS.values() if not spec.on_device],
        predicted=[spec for spec in METRICS.values() if spec.on_device and spec is not PEAK_MEMORY],
        variables=Markup(style_variables()),
        library=chart.library(),
    )


@cache
def _environment() -> Environment:
    """The templates, which are kept, so that reports of one process compile each of them once."""
    return Environment(
        loader=PackageLoader("autotailor.reporting", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=printable_value,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _featured_label(tables: Tables) -> str:
    """Description of the featured SubNet."""
    cost = tables.cost
    fewer, least = ("faster", "the fastest") if cost.is_measured else (f"fewer {cost.title}", "the smallest")
    if derived_columns.DERIVATIONS["speedup"].compute(tables, tables.compared.featured) >= 2:
        return f"{fewer}: the {tables.score.best} SubNet at half the {cost.title} or less"
    return f"{fewer}: {least} SubNet exported"


def _time(tables: Tables) -> dict[str, Any]:
    """Where the time goes: the SubNets, the one that is shown first, its places, sums; empty without a table."""
    table = tables.table("contributors")
    if table is None:
        return {}
    shown = contributors.compared(tables)
    columns = ("kind", "stage") if breakdown.has_stages(table) else ("kind",)
    names = list(dict.fromkeys(table["name"]))
    cells = {
        name: {
            place: [row["kind"], row["stage"], *(None if math.isnan(row[c]) else row[c] for c in ("before", "after"))]
            for place, row in breakdown.places(table, name).iterrows()
        }
        for name in names
    }
    return {
        "base": breakdown.base(table),
        "shown": shown,
        "names": names,
        "places": breakdown.places(table, shown),
        "has_stages": "stage" in columns,
        "sums": {column: breakdown.sums(table, column) for column in columns},
        "cells": chart.json_text(cells),
    }


def _configuration(tables: Tables) -> dict[str, list[tuple[str, ...]]]:
    """Paths of the configuration's values, by section."""
    sections: dict[str, list[tuple[str, ...]]] = {}
    for path in _leaves(tables.document("configuration")):
        sections.setdefault(path[0] if len(path) > 1 else "general", []).append(path)
    return dict(sorted(sections.items(), key=lambda item: item[0] != "general"))


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of all values in nested dictionaries, without null values."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, str(key)))
    elif value is not None and path:
        yield path
