"""The Pareto front of high accuracy and low cost: latency, or what else the search minimises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from autotailor.artifacts import atomic
from autotailor.ir.space.link import IDENTITY, Link
from autotailor.ir.space.metric import FloatArray, Metric
from autotailor.ir.space.subnet import IntArray, SubNet
from autotailor.ir.space.variable import Space
from autotailor.search.config import SearchError
from autotailor.search.cost import LATENCY, Cost, cost_of_metric

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Objectives:
    """The objectives: accuracy, which is maximised, and a cost, which is minimised and which budgets limit.

    Attributes:
        accuracy: in percent.
        cost: latency in ms, or another metric.
        further: metrics that are only reported.
    """

    accuracy: Metric
    cost: Metric
    further: tuple[Metric, ...] = ()

    def __post_init__(self) -> None:
        for metric in (self.cost, *self.further):
            if metric.space != self.accuracy.space:
                raise SearchError(
                    f"metric {metric.name} is over another space than metric {self.accuracy.name}; "
                    "all metrics of one search must come from the same SuperNet: rebuild the stale artifact"
                )

    @property
    def space(self) -> Space:
        """The space that all metrics share."""
        return self.accuracy.space

    @property
    def kind(self) -> Cost:
        """What the cost is called in tables and messages."""
        return cost_of_metric(self.cost.name, self.cost.unit)


def spread(cost: FloatArray, points: int) -> IntArray:
    """Rows ``[k]`` of a front that are the best within ``points`` budgets, spread evenly over the front's range.

    Args:
        cost: of the front, rising, ``[n]``; a front with at most ``points`` SubNets is taken as a whole.
        points: number of budgets; at least two.
    """
    if len(cost) <= points:
        return np.arange(len(cost))
    budgets = np.linspace(cost[0], cost[-1], points)
    budgets[-1] = cost[-1]
    return np.unique(np.searchsorted(cost, budgets, side="right") - 1)


def non_dominated(cost: FloatArray, accuracy: FloatArray) -> IntArray:
    """Rows ``[k]`` of the points that no other point dominates, by rising cost; of equal points the first.

    Both inputs have shape ``[n]``. Cost and accuracy rise strictly along the result. Values are rounded to 1e-9,
    so that another order of summation does not change the result.
    """
    cost, accuracy = np.round(cost, 9), np.round(accuracy, 9)
    order = np.lexsort((-accuracy, cost))
    sorted_accuracy = accuracy[order]
    best_before = np.concatenate(([-np.inf], np.maximum.accumulate(sorted_accuracy)[:-1]))
    return np.asarray(order[sorted_accuracy > best_before], dtype=np.int64)


def rounded_up(value: float) -> str:
    """A cost with four significant digits that is not below the cost, so that a budget of it can be kept."""
    return f"{float(Context(prec=4, rounding=ROUND_CEILING).create_decimal_from_float(value)):.4g}"


@dataclass(frozen=True, eq=False)
class Front:
    """SubNets that no other known SubNet dominates, by rising cost, which is also rising accuracy.

    Attributes:
        space: the space of the SubNets.
        indices: choice indices ``[n, variables]``, canonical.
        accuracy: predicted accuracy ``[n]``, percent.
        cost: predicted cost ``[n]``, in the unit of ``kind``.
        further: maps column names (``macs_m``) to predicted values ``[n]``.
        found_by: for each SubNet, the search that found it: ``genetic``, ``exact`` or ``both``.
        kind: what the cost is called in tables and messages.
    """

    space: Space
    indices: IntArray
    accuracy: FloatArray
    cost: FloatArray
    further: Mapping[str, FloatArray] = field(default_factory=dict)
    found_by: tuple[str, ...] = ()
    kind: Cost = LATENCY

    @classmethod
    def of(cls, objectives: Objectives, indices: IntArray, found_by: str) -> Front:
        """The front of the SubNets with canonical choice indices ``[n, variables]``."""
        cost, accuracy = objectives.cost.predict(indices), objectives.accuracy.predict(indices)
        rows = non_dominated(cost, accuracy)
        kept = indices[rows]
        further = {f"{m.name}_{m.unit.lower()}": m.predict(kept) for m in objectives.further}
        finders = (found_by,) * len(rows)
        return cls(objectives.space, kept, accuracy[rows], cost[rows], further, finders, objectives.kind)

    def __len__(self) -> int:
        return len(self.cost)

    @property
    def subnets(self) -> tuple[SubNet, ...]:
        """The SubNets, by rising cost."""
        return tuple(SubNet.from_array(self.space, row) for row in self.indices)

    def position(self, budget: float, name: str = "budget") -> int:
        """Row of the most accurate SubNet whose predicted cost is at most ``budget``, in the unit of the cost.

        Raises:
            SearchError: no SubNet of the front costs so little.
        """
        row = int(np.searchsorted(self.cost, budget, side="right")) - 1
        if row < 0:
            title, unit = self.kind.title, self.kind.unit
            raise SearchError(
                f"{name} of {budget:.4g} {unit}: every SubNet of this space has {title} of at least "
                f"{rounded_up(float(self.cost[0]))} {unit}, as predicted; raise the budget to this, or offer smaller "
                "choices in model.space"
            )
        return row

    def at(self, budget: float, name: str = "budget") -> SubNet:
        """The most accurate SubNet predicted to cost at most ``budget``; SearchError if there is none."""
        return SubNet.from_array(self.space, self.indices[self.position(budget, name)])

    def take(self, rows: IntArray) -> Front:
        """The part of the front in some rows ``[k]``, given in rising order."""
        further = {name: values[rows] for name, values in self.further.items()}
        found_by = tuple(self.found_by[row] for row in rows)
        return Front(self.space, self.indices[rows], self.accuracy[rows], self.cost[rows], further, found_by, self.kind)

    def spread(self, points: int) -> Front:
        """The most accurate SubNet at each of ``points`` budgets, see ``spread``."""
        return self.take(spread(self.cost, points))

    def frame(self, link: Link = IDENTITY) -> pd.DataFrame:
        """One row for each SubNet: ``pareto.csv`` of design section 5.

        Args:
            link: from predicted costs to what the device is expected to take; unused where the graph says the cost.
        """
        import pandas as pd

        subnets = self.subnets
        return pd.DataFrame(
            {
                "subnet": [subnet.id for subnet in subnets],
                "accuracy_predicted": self.accuracy,
                self.kind.column: self.cost,
                **({self.kind.expected: link.value(self.cost)} if self.kind.is_measured else {}),
                **self.further,
                "found_by": self.found_by,
                "assignment": [subnet.to_json() for subnet in subnets],
            }
        )

    def write(self, path: Path, link: Link = IDENTITY) -> None:
        """Writes ``pareto.csv`` (``frame``); an interrupted write leaves no file."""
        with atomic(path) as temporary:
            self.frame(link).to_csv(temporary, index=False, lineterminator="\n")

    @classmethod
    def read(cls, path: Path, space: Space, kind: Cost = LATENCY) -> Front:
        """Reads a file of ``write``, whose cost is ``kind``."""
        import pandas as pd

        table = pd.read_csv(path, dtype={"subnet": str})
        own = ("subnet", "accuracy_predicted", kind.column, kind.expected, "found_by", "assignment")
        indices = np.stack([SubNet.from_json(space, text).to_array() for text in table["assignment"]])
        further = {c: table[c].to_numpy(dtype=np.float64) for c in table.columns if c not in own}
        return cls(
            space,
            indices,
            table["accuracy_predicted"].to_numpy(dtype=np.float64),
            table[kind.column].to_numpy(dtype=np.float64),
            further,
            tuple(table["found_by"]),
            kind,
        )


def merge(genetic: Front, exact: Front) -> Front:
    """The front of the SubNets of two fronts over one space; ``found_by`` tells which search found each SubNet."""
    names: dict[bytes, str] = {row.tobytes(): "genetic" for row in genetic.indices}
    for row in exact.indices:
        names[row.tobytes()] = "both" if row.tobytes() in names else "exact"
    cost = np.concatenate([exact.cost, genetic.cost])
    accuracy = np.concatenate([exact.accuracy, genetic.accuracy])
    indices = np.concatenate([exact.indices, genetic.indices])
    further = {k: np.concatenate([exact.further[k], genetic.further[k]]) for k in exact.further}
    found_by = tuple(names[row.tobytes()] for row in indices)
    joined = Front(exact.space, indices, accuracy, cost, further, found_by, exact.kind)
    return joined.take(non_dominated(cost, accuracy))
