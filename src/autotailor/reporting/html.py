"""Fills ``templates/report.html``, and writes ``report.html``: a single file that needs no other files.

The template has the columns of each table; computed numbers stand in ``derived_columns.py``.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from autotailor.artifacts import atomic
from autotailor.reporting import comparison, cost_figures, derived_columns, figures
from autotailor.reporting.inputs import ReportInputs, Tables
from autotailor.reporting.marks import ABSENT, Marker
from autotailor.reporting.style import svg, write_svg

FIGURES: Mapping[str, tuple[str, Callable[[Tables], Figure]]] = {
    "front": ("pareto", figures.front_figure),
    "latency": ("validation", figures.latency_figure),
    "accuracy": ("accuracy_validation", figures.accuracy_figure),
    "sensitivity": ("sensitivity", cost_figures.sensitivity_figure),
    "contributors": ("contributors", cost_figures.contributors_figure),
}
"""Maps the name of each figure to the table that the figure needs and to the function that draws it."""


def build_report(inputs: ReportInputs, path: Path) -> None:
    """Writes the report; an interrupted write leaves no file.

    Raises:
        ReportError: an artifact cannot be read or lacks a column.
    """
    text = render(inputs)
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_figure(name: str, inputs: ReportInputs, path: Path) -> None:
    """Writes one figure (a name of FIGURES) as SVG; a placeholder where the figure's table is missing or empty."""
    tables = Tables(inputs)
    needed, draw = FIGURES[name]
    write_svg(figures.absent_figure() if tables.table(needed) is None else draw(tables), path)


def render(inputs: ReportInputs) -> str:
    """The report's HTML."""
    tables = Tables(inputs)
    marker = Marker(tables)
    environment = Environment(
        loader=PackageLoader("autotailor.reporting", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("report.html")
    return template.render(
        inputs=inputs,
        tables=tables,
        cell=marker.cell,
        derived=marker.derived,
        json=marker.json,
        constant=marker.constant,
        has=lambda name: _has(tables, name),
        file=tables.file,
        figure=lambda name, alt: _figure(tables, name, alt),
        rows=lambda name: list(tables.needed(name).index),
        reference=derived_columns.reference(tables),
        featured=derived_columns.featured(tables),
        featured_label=_featured_label(tables),
        top_places=_top_places(tables),
        configuration=_configuration(tables),
        promise_broken=derived_columns.promise_broken(tables),
        original=comparison.ORIGINAL,
        score=tables.score,
        absent=ABSENT,
        cost=tables.cost,
    )


def _has(tables: Tables, name: str) -> bool:
    """Whether an input exists and is not empty."""
    return bool(tables.table(name) is not None if name in tables.names else tables.document(name))


def _figure(tables: Tables, name: str, alt: str) -> Markup:
    """A figure inside the page, as an image, because the ids of several inline SVGs would collide."""
    data = base64.b64encode(svg(FIGURES[name][1](tables))).decode()
    return Markup('<img alt="{}" src="data:image/svg+xml;base64,{}">').format(alt, data)


def _featured_label(tables: Tables) -> str:
    """Description of the featured SubNet."""
    cost = tables.cost
    fewer, least = ("faster", "the fastest") if cost.is_measured else (f"fewer {cost.title}", "the smallest")
    if derived_columns.DERIVATIONS["speedup"].compute(tables, derived_columns.featured(tables)) >= 2:
        return f"{fewer}: the {tables.score.best} SubNet at half the {cost.title} or less"
    return f"{fewer}: {least} SubNet exported"


def _top_places(tables: Tables) -> list[str]:
    """Row names of the slowest places of the largest and of the featured SubNet, six of each."""
    table = tables.table("contributors")
    if table is None:
        return []
    names = [n for n in (comparison.LARGEST, derived_columns.featured(tables)) if n in set(table["name"])]
    slowest = [table[table["name"] == n].nlargest(6, "latency_ms", keep="first") for n in dict.fromkeys(names)]
    return [str(row) for part in slowest for row in part.index]


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
