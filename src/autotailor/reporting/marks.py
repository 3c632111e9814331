"""HTML marks: every number and name in the report carries the artifact from which it comes."""

import math
from typing import Any

from markupsafe import Markup, escape

from autotailor.reporting.derived_columns import DERIVATIONS
from autotailor.reporting.inputs import Tables
from autotailor.reporting.steps import Cell, Derived, Entry, Fact

ABSENT = Markup('<span class="absent">–</span>')


def shown(value: Any, spec: str) -> str:
    """A value as text: by Python's format, with a typographic minus sign in numbers."""
    if spec == "s":
        return str(value)
    return format(value, spec).replace("-", "−")


def is_absent(value: Any) -> bool:
    """None or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


class Marker:
    """Makes marked spans: ``data-source`` names the artifact, the other attributes the position in it.

    - ``data-row``, ``data-column``: a cell of a CSV (KEYS names the columns that identify a row).
    - ``data-path``: a value of a JSON document, as its keys joined by ``/``.
    - ``data-derivation``, ``data-row``: one of DERIVATIONS, with the row if the derivation is about one row.
    - ``data-answer``: a sentence of the answer.

    ``data-format`` is the format of the text, ``s`` for names.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables

    def cell(self, table: str, row: str, column: str, spec: str = "s") -> Markup:
        """One cell of a CSV; a dash where the cell is empty."""
        value = self.tables.value(table, row, column)
        if is_absent(value) or value == "":
            return ABSENT
        source = {"source": self.tables.file(table), "row": row, "column": column}
        return _span(shown(value, spec), spec, **source)

    def derived(self, name: str, spec: str, row: str = "") -> Markup:
        """One derived number; a dash where its inputs are missing."""
        derivation = DERIVATIONS[name]
        if any(getattr(self.tables.inputs, table) is None for table in derivation.inputs):
            return ABSENT
        value = derivation.compute(self.tables, row)
        if is_absent(value):
            return ABSENT
        sources = " ".join(self.tables.file(table) for table in derivation.inputs)
        meaning = derivation.meaning.format(
            score=self.tables.score.name, mean=self.tables.score.mean, cost=self.tables.cost.title
        )
        return _span(shown(value, spec), spec, source=sources, derivation=name, row=row, title=meaning)

    def json(self, document: str, path: tuple[str, ...], spec: str = "s") -> Markup:
        """One value of a JSON artifact; a dash where the value is missing."""
        value = self.tables.entry(document, path)
        if is_absent(value):
            return ABSENT
        return _span(shown(value, spec), spec, source=self.tables.file(document), path="/".join(path))

    def fact(self, fact: Fact) -> Markup:
        """A number of a step with its standard error and its unit."""
        shown = self._at(fact.at, fact.spec)
        error = ABSENT if fact.error is None else self._at(fact.error, fact.spec.lstrip("+"))
        if error != ABSENT:
            shown = Markup('{}<span class="se"> ±{}</span>').format(shown, error)
        return Markup("{} {}").format(shown, fact.unit) if fact.unit else shown

    def _at(self, at: Cell | Entry | Derived, spec: str) -> Markup:
        if isinstance(at, Derived):
            return self.derived(at.column, spec, at.row)
        return self.json(at.source, at.path, spec) if isinstance(at, Entry) else self.cell(*at, spec)

    @staticmethod
    def said(text: str, name: str) -> Markup:
        """A sentence of the answer, whose names between backticks become code; ``data-answer`` names the sentence."""
        pieces = text.split("`")
        shown = Markup("").join(
            Markup("<code>{}</code>").format(piece) if number % 2 else piece for number, piece in enumerate(pieces)
        )
        return Markup('<span data-answer="{}">{}</span>').format(name, shown)

    @staticmethod
    def constant(text: object) -> Markup:
        """A number that is part of the text, such as a threshold."""
        return Markup("<span data-constant>{}</span>").format(text)


def _span(text: str, spec: str, title: str = "", **data: str) -> Markup:
    """A marked span."""
    attributes = "".join(f' data-{key}="{escape(value)}"' for key, value in data.items() if value)
    tooltip = f' title="{escape(title)}"' if title else ""
    return Markup(f'<span{attributes} data-format="{escape(spec)}"{tooltip}>{escape(text)}</span>')
