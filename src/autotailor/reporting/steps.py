"""Why a SubNet was chosen: the steps that led to one export, each number with the place where it stands.

``autotailor why`` prints the steps, and the report shows them below its table of exports.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from autotailor.reporting.comparison import ORIGINAL
from autotailor.reporting.derived_columns import DERIVATIONS
from autotailor.reporting.inputs import ReportError, Tables

if TYPE_CHECKING:
    import pandas as pd


class Cell(NamedTuple):
    """One cell of a table.

    Attributes:
        source: of ReportInputs.
        row: as ``inputs.KEYS`` names it.
        column: of the cell.
    """

    source: str
    row: str
    column: str

    def value(self, tables: Tables) -> Any:
        """What stands there; None where the table lacks the column."""
        return tables.value(self.source, self.row, self.column)


class Entry(NamedTuple):
    """One value of a JSON document: ``row`` is the name of the export, ``column`` the keys above and below it."""

    source: str
    row: str
    column: tuple[str, str]

    @property
    def path(self) -> tuple[str, ...]:
        """The keys that lead to the value."""
        return self.column[0], self.row, self.column[1]

    def value(self, tables: Tables) -> Any:
        """What stands there; None where a key is missing."""
        return tables.entry(self.source, self.path)


class Derived(NamedTuple):
    """A number that is computed from a table: ``column`` is one of ``DERIVATIONS``."""

    source: str
    row: str
    column: str

    def value(self, tables: Tables) -> float:
        """The number."""
        return DERIVATIONS[self.column].compute(tables, self.row)


@dataclass(frozen=True)
class Fact:
    """One number or name of a step.

    Attributes:
        name: what it is.
        at: where it stands.
        unit: of the number.
        spec: Python's format of the number in the report.
        error: where its standard error stands.
    """

    name: str
    at: Cell | Entry | Derived
    unit: str = ""
    spec: str = "s"
    error: Cell | Derived | None = None

    def is_known(self, tables: Tables) -> bool:
        """Whether something stands there."""
        value = self.at.value(tables)
        return value is not None and value != "" and not (isinstance(value, float) and math.isnan(value))

    def to_dict(self, tables: Tables) -> dict[str, Any]:
        """Plain data for JSON, with the source."""
        column = self.at.column if isinstance(self.at.column, str) else "/".join(self.at.column)
        error = None if self.error is None else self.error.value(tables)
        return {
            "name": self.name,
            "value": self.at.value(tables),
            "unit": self.unit or None,
            "standard_error": None if error is None or math.isnan(error) else error,
            "source": {"file": tables.file(self.at.source), "row": self.at.row or None, "column": column},
        }


@dataclass(frozen=True)
class Step:
    """What one rule found of an export, and what followed.

    Attributes:
        title: of the step.
        said: what followed, in one sentence without numbers.
        facts: the numbers behind it; those that the run does not know are left out.
    """

    title: str
    said: str
    facts: tuple[Fact, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """The artifacts, as ReportInputs names them."""
        return tuple(dict.fromkeys(fact.at.source for fact in self.facts))


def steps(tables: Tables, name: str) -> tuple[Step, ...]:
    """The steps that led to an export, in the order of the rules; steps whose artifact is missing are left out.

    Args:
        tables: of the run.
        name: of the export, such as ``budget_01``.

    Raises:
        ReportError: the run has no such export.
    """
    summary = tables.needed("summary")
    if name == ORIGINAL or name not in summary.index:
        names = ", ".join(str(each) for each in summary.index if each != ORIGINAL)
        raise ReportError(f"{name}: the run has no export of this name; known are {names}")
    of = _Export(tables, name, str(summary.loc[name, "subnet"]))
    return tuple(
        Step(step.title, step.said, tuple(fact for fact in step.facts if fact.is_known(tables))) for step in of.steps()
    )


@dataclass(frozen=True)
class _Export:
    """One export: its name and the id of its SubNet."""

    tables: Tables
    name: str
    subnet: str

    def steps(self) -> Iterator[Step]:
        yield self._front()
        if (rows := self._of_budget("candidates")) is not None:
            yield self._candidates(rows)
        if (rows := self._of_budget("confirmed")) is not None:
            yield self._confirmation(rows)
        if (race := self.tables.table("polish")) is not None:
            yield from self._race(race)
        if self.tables.document("chosen"):
            yield self._weights()
        yield self._measurement()

    def _of_budget(self, table: str) -> pd.DataFrame | None:
        """The rows of this budget by the id of the SubNet; None where there are none, as for the largest SubNet."""
        frame = self.tables.table(table)
        rows = None if frame is None else frame[frame["budget"] == self.name].set_index("subnet")
        return None if rows is None or rows.empty else rows

    def _front(self) -> Step:
        cost = self.tables.cost
        size = Fact("SubNets on the front", Derived("pareto", "", "front_subnets"), "", ".0f")
        if self.subnet not in self.tables.needed("pareto").index:
            said = "The SubNet is not on the front: candidates are also what lies near it, and what the run evaluated."
            return Step("Front", said, (size,))
        said = f"The SubNet is on the front: none is predicted to be better at its {cost.title} or less."
        by = Fact("found by the searches", Cell("pareto", self.subnet, "found_by"))
        return Step("Front", said, (*self._predicted("pareto", self.subnet), by, size))

    def _predicted(self, table: str, row: str) -> tuple[Fact, Fact]:
        """Predicted cost and accuracy of a row."""
        cost = self.tables.cost
        how = "expected" if cost.is_measured else "predicted"
        return (
            Fact(f"{how} {cost.title}", Cell(table, row, cost.expected), cost.unit, ".3f"),
            Fact(f"predicted {self.tables.score.mean}", Cell(table, row, "accuracy_predicted"), "%", ".2f"),
        )

    def _evaluated(self, table: str, row: str, whose: str = "") -> tuple[Fact, Fact]:
        """The accuracy of a row on the validation set, as evaluated and with luck taken out."""
        score = self.tables.score.mean
        error, luck = Cell(table, row, "standard_error"), Cell(table, row, "posterior_standard_error")
        return (
            Fact(f"{whose}{score}, validation set", Cell(table, row, "accuracy_validation"), "%", ".2f", error),
            Fact(f"{whose}{score}, luck taken out", Cell(table, row, "accuracy_posterior"), "%", ".2f", luck),
        )

    def _chosen(self, table: str, rows: pd.DataFrame) -> tuple[str, tuple[Fact, ...]]:
        """Which SubNet a rule chose for the budget: a sentence, and the other SubNet's facts where it was another."""
        chosen = rows.index[rows["chosen"].astype(bool)]
        if self.subnet in chosen:
            return f"It was chosen: with luck taken out, it has the highest {self.tables.score.mean}.", ()
        if chosen.empty:
            return "", ()
        row = f"{self.name}|{chosen[0]}"
        other = Fact("the SubNet that was chosen", Cell(table, row, "subnet"))
        said = "Another SubNet was chosen with the weights that all share; this one remained in the contest."
        return said, (other, *self._evaluated(table, row, "its "))

    def _candidates(self, rows: pd.DataFrame) -> Step:
        cost, row = self.tables.cost, f"{self.name}|{self.subnet}"
        said, other = self._chosen("candidates", rows)
        first = f"{self.name}|{rows.index[0]}"
        budget = (
            Fact("budget", Cell("candidates", first, cost.budget), cost.unit, ".3f"),
            Fact("budget, as a share", Cell("candidates", first, "budget_share"), "", ".2f"),
            Fact("candidates of the budget", Derived("candidates", self.name, "budget_candidates"), "", ".0f"),
        )
        if self.subnet not in rows.index:
            return Step("Candidates", "The search did not list the SubNet for this budget.", (*budget, *other))
        upper = (
            [Fact("rarely measured above", Cell("candidates", row, cost.upper), cost.unit, ".3f")]
            if cost.is_measured
            else []
        )
        own = (*self._predicted("candidates", row), *upper, *self._evaluated("candidates", row))
        return Step("Candidates", said, (*budget, *own, *other))

    def _confirmation(self, rows: pd.DataFrame) -> Step:
        row = f"{self.name}|{self.subnet}"
        said, other = self._chosen("confirmed", rows)
        met = Fact("SubNets that meet the budget", Derived("confirmed", self.name, "budget_confirmed"), "", ".0f")
        if self.subnet not in rows.index:
            return Step("Confirmation", "The SubNet was not measured before it was polished.", (met, *other))
        met_it = bool(rows.loc[self.subnet, "met"])
        kept = f"It {'meets' if met_it else 'does not meet'} the budget with the probability of search.confidence."
        return Step("Confirmation", f"{kept} {said}".strip(), (*self._timed(row), met, *other))

    def _timed(self, row: str) -> tuple[Fact, ...]:
        """What was measured before polishing."""
        latency, share = (Cell("confirmed", row, f"{n}_standard_error") for n in ("latency_ms", "share"))
        return (
            Fact("budget in this session", Cell("confirmed", row, "budget_ms"), "ms", ".3f"),
            Fact("measured latency", Cell("confirmed", row, "latency_ms_measured"), "ms", ".3f", latency),
            Fact("share of the largest SubNet", Cell("confirmed", row, "share_measured"), "", ".3f", share),
            Fact("probability of keeping it again", Cell("confirmed", row, "probability"), "", ".3f"),
        )

    def _race(self, race: pd.DataFrame) -> Iterator[Step]:
        """One step for each round in which SubNets of this budget were trained."""
        mine = race[[self.name in str(budgets).split() for budgets in race["budgets"]]]
        for number, heat in mine.groupby("round", sort=True):
            row, title = f"{number}|{self.subnet}", "Training together" if str(number) == "0" else "Race"
            facts = (
                Fact("round", Cell("polish", f"{number}|{heat['subnet'].iloc[0]}", "round")),
                Fact("SubNets of this budget", Derived("polish", f"{number}|{self.name}", "round_entrants"), "", ".0f"),
            )
            if self.subnet not in set(heat["subnet"]):
                yield Step(title, "The SubNet did not take part in this round.", facts)
                continue
            yield Step(title, self._outcome(heat), (*facts, *self._trained(row)))

    def _outcome(self, heat: pd.DataFrame) -> str:
        """How the SubNet came out of a round beside the others, by what the race judged them by (``polish.judge``)."""
        if len(heat) == 1:
            return "It was the only SubNet of this budget in this round."
        ends = heat.set_index("subnet")
        is_taught = bool(ends["divergence"].notna().all())
        merit = -ends["divergence"] if is_taught else ends["accuracy_validation"]
        better = "came nearer to the teacher's answers" if is_taught else "came out better"
        return f"{'No' if merit[self.subnet] == merit.max() else 'Another'} SubNet of this budget {better}."

    def _trained(self, row: str) -> tuple[Fact, ...]:
        score = self.tables.score.mean
        error = Cell("polish", row, "standard_error")
        return (
            Fact("epochs", Cell("polish", row, "epochs")),
            Fact("images so far", Cell("polish", row, "images")),
            Fact(f"{score} before", Cell("polish", row, "accuracy_before"), "%", ".2f"),
            Fact(f"{score} after, validation set", Cell("polish", row, "accuracy_validation"), "%", ".2f", error),
            Fact("distance from the teacher's answers before", Cell("polish", row, "divergence_before"), "nats", ".3f"),
            Fact("distance after", Cell("polish", row, "divergence"), "nats", ".3f"),
        )

    def _weights(self) -> Step:
        score = self.tables.score.mean
        names = {"inherited": "with inherited weights", "polished": "with weights of its own"}
        facts = [
            Fact(f"{score} {said}", Entry("chosen", self.name, ("accuracy_validation", kind)), "%", ".2f")
            for kind, said in names.items()
        ]
        own = str(self.tables.needed("summary").loc[self.name, "weights"]) == "polished"
        said = (
            "It is exported with weights of its own, which the race judged better on the validation set than before."
            if own
            else "It is exported with the weights that it inherits from the SuperNet."
        )
        return Step("Weights", said, tuple(facts))

    def _measurement(self) -> Step:
        score, kept = self.tables.score.name, self._at("budget_met")
        change, change_error = (Derived("summary", self.name, f"accuracy_change{end}") for end in ("", "_error"))
        told = {"True": " It keeps its budget.", "False": " It misses its budget."}
        where = "latency on the device, " if self.tables.cost.is_measured else ""
        return Step(
            "Measurement",
            f"What the exported file does: {where}{score} on the test set.{told.get(str(kept.value(self.tables)), '')}",
            (
                *self._predicted("summary", self.name),
                self._measured("measured latency", "latency_ms", "ms", ".3f"),
                Fact("budget in this session", self._at("budget_ms"), "ms", ".3f"),
                Fact(f"{score} with inherited weights", self._at("accuracy_inherited"), "%", ".2f"),
                self._measured(score, "accuracy", "%", ".2f"),
                Fact(f"{score} against {self.tables.compared.reference}", change, "points", "+.2f", change_error),
            ),
        )

    def _measured(self, name: str, column: str, unit: str, spec: str) -> Fact:
        return Fact(name, self._at(f"{column}_measured"), unit, spec, self._at(f"{column}_standard_error"))

    def _at(self, column: str) -> Cell:
        """A cell of the export's row of ``summary.csv``."""
        return Cell("summary", self.name, column)
