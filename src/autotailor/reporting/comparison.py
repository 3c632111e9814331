"""Compares the exported SubNets of ``summary.csv`` with the network that they were made from."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from autotailor.search.cost import Cost

ORIGINAL, LARGEST = "original", "largest"
PAIRED = "accuracy_change_standard_error"


@dataclass(frozen=True)
class Difference:
    """A number that compares two networks.

    Attributes:
        value: of the difference or the ratio.
        error: its standard error; NaN where that is not known.
    """

    value: float
    error: float

    def is_beyond_error(self, from_value: float) -> bool:
        """Whether the value differs from another by more than two standard errors; any difference without an error."""
        error = 0.0 if math.isnan(self.error) else self.error
        return abs(self.value - from_value) > 2 * error


@dataclass(frozen=True, eq=False)
class Comparison:
    """The rows of ``summary.csv`` beside the row of the network that they are compared with.

    Attributes:
        summary: ``summary.csv``, with its rows indexed by name.
        cost: what budgets limit.
    """

    summary: pd.DataFrame
    cost: Cost

    @cached_property
    def reference(self) -> str:
        """Name of the network that SubNets are compared with: the original, else the largest SubNet."""
        names = self.summary.index
        return next((name for name in (ORIGINAL, LARGEST) if name in names), str(names[0]))

    @cached_property
    def cost_column(self) -> str:
        """The column with measured latencies if every row has one, else with the expected cost."""
        return self.cost.reached if self.summary[self.cost.reached].notna().all() else self.cost.expected

    @property
    def is_measured(self) -> bool:
        """Whether the costs that are compared were measured on a device."""
        return self.cost.is_measured and self.cost_column == self.cost.reached

    @cached_property
    def accuracy_column(self) -> str:
        """The column of measured accuracies if every row has one, else of predicted accuracies."""
        return "accuracy_measured" if self.summary["accuracy_measured"].notna().all() else "accuracy_predicted"

    @cached_property
    def featured(self) -> str:
        """The SubNet at the head of the report: the most accurate one with at most half of the reference's cost.

        Where no SubNet costs so little, the cheapest SubNet is taken. A SubNet that misses its budget is taken only
        where every SubNet does, and the largest SubNet where there is no other.
        """
        names = [name for name in self.summary.index if name not in (ORIGINAL, LARGEST)]
        names = names or [name for name in self.summary.index if name != self.reference] or [self.reference]
        subnets = self.summary.loc[names]
        kept = subnets[[name not in self.missed for name in subnets.index]]
        subnets = kept if len(kept) else subnets
        cheap = subnets[subnets[self.cost_column] <= self.number(self.reference, self.cost_column) / 2]
        if len(cheap):
            return str(cheap[self.accuracy_column].idxmax())
        return str(subnets[self.cost_column].idxmin())

    @cached_property
    def budgets(self) -> tuple[str, ...]:
        """Names of the SubNets of which it is known whether they keep their budget when measured."""
        return tuple(str(name) for name, met in self._met() if met in ("True", "False"))

    @cached_property
    def missed(self) -> tuple[str, ...]:
        """Names of the SubNets that miss their budget when measured."""
        return tuple(str(name) for name, met in self._met() if met == "False")

    @cached_property
    def repeated(self) -> tuple[tuple[str, ...], ...]:
        """Names of exports that are one SubNet with the same weights, where there are several of them."""
        if not {"subnet", "weights"} <= set(self.summary.columns):
            return ()
        exports = self.summary[~self.summary.index.isin([ORIGINAL, LARGEST])]
        same = exports.groupby(["subnet", "weights"], sort=False).groups.values()
        return tuple(tuple(map(str, names)) for names in same if len(names) > 1)

    def is_whole(self, row: str) -> bool:
        """Whether a row has the architecture of the original network: it is the largest SubNet."""
        if row in (ORIGINAL, LARGEST):
            return True
        if "subnet" not in self.summary.columns or LARGEST not in self.summary.index:
            return False
        return str(self.summary.loc[row, "subnet"]) == str(self.summary.loc[LARGEST, "subnet"])

    def speedup(self, row: str) -> Difference:
        """Cost of the reference over the cost of a row; the error is that of two independent measurements."""
        column = self.cost_column
        above, below = self.number(self.reference, column), self.number(row, column)
        value = above / below
        if not self.is_measured:
            return Difference(value, math.nan)
        errors = [self.number(name, "latency_ms_standard_error") for name in (self.reference, row)]
        return Difference(value, value * math.hypot(errors[0] / above, errors[1] / below))

    def accuracy_change(self, row: str) -> Difference:
        """Accuracy of a row minus that of the reference, in points.

        Both networks see the same images, so that the error is paired. Runs of before did not record it: theirs is the
        error of two independent test sets, which is larger.
        """
        column = self.accuracy_column
        value = self.number(row, column) - self.number(self.reference, column)
        if column != "accuracy_measured":
            return Difference(value, math.nan)
        paired = self.number(row, PAIRED) if self.reference == ORIGINAL else math.nan
        errors = [self.number(name, "accuracy_standard_error") for name in (self.reference, row)]
        return Difference(value, math.hypot(*errors) if math.isnan(paired) else paired)

    def number(self, row: str, column: str) -> float:
        """One number of the summary; NaN where the cell is empty or the column is missing."""
        if column not in self.summary.columns:
            return math.nan
        value: Any = self.summary.loc[row, column]
        return float(value)

    def _met(self) -> list[tuple[Any, str]]:
        """Name of each row and ``True``, ``False`` or ``nan``; runs of before have no such column."""
        if "budget_met" not in self.summary.columns:
            return []
        return [(name, str(met)) for name, met in self.summary["budget_met"].items()]
