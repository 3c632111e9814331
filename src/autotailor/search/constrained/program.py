"""The problem of one objective and some constraints over the entries of all cliques.

With l_e the loss of entry e, c_re the cost of row r, and the entries of a SubNet one of each clique,

    minimise    sum_e l_e    such that    sum_e c_re <= b_r    for each row r,

where the sums go over the SubNet's entries. A sum of terms is one row. Peak memory, a largest value, is one row for
each clique with steps: the resident weights plus the largest step of the clique.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from autotailor.ir.metrics.memory import PeakMemory
from autotailor.ir.space.metric import FloatArray, Metric
from autotailor.ir.space.subnet import IntArray, SubNet, largest
from autotailor.search.constrained.cliques import Cliques, Reduced, Tables, reduce, steps_of, tables_of

Amount = float | str
"""A number in the metric's unit, a share, a throughput or a count (see ``budgets.read_budget``)."""


@dataclass(frozen=True, eq=False)
class Constraint:
    """A metric that has an upper limit.

    Attributes:
        metric: a sum of terms, or peak memory.
        name: what budgets call it; several devices have several latencies, for instance ``latency@phone``. By default
            the metric's name.
    """

    metric: Metric | PeakMemory
    name: str = ""

    @property
    def key(self) -> str:
        """The name in budgets."""
        return self.name or self.metric.name


@dataclass(frozen=True, eq=False)
class Solution:
    """The best SubNet that was found within some budgets.

    Attributes:
        subnet: the SubNet.
        value: its objective, in the objective's unit.
        bound: no SubNet within ``budgets`` has a higher objective.
        budgets: the limit of each constraint that the SubNet keeps, in the metrics' units; infinite where none was
            asked for. Where no SubNet keeps the budgets asked for, all of them are raised by the same factor, as little
            as possible.
        spent: the predicted value of each constraint's metric.
        raised: the factor by which the budgets were raised; 1 where the budgets asked for can be met.
        raised_bound: no SubNet keeps budgets that are raised by less; equal to ``raised`` where the time was enough.
    """

    subnet: SubNet
    value: float
    bound: float
    budgets: Mapping[str, float]
    spent: Mapping[str, float]
    raised: float = 1.0
    raised_bound: float = 1.0

    @property
    def gap(self) -> float:
        """By how much a better objective could be higher, in its unit; 0 where the SubNet is known to be the best."""
        return max(0.0, self.bound - self.value)

    @property
    def meets(self) -> bool:
        """Whether the SubNet keeps the budgets that were asked for."""
        return self.raised == 1.0


class Program:
    """An objective and constraints as tables; budgets are given anew for each answer.

    Attributes:
        cliques: of all tables.
        loss: the negated objective of each entry ``[entries]``, without its constant.
        constant: the objective's constant.
        costs: of each row and entry ``[rows, entries]``.
        constants: what a row adds to its entries' costs ``[rows]``.
        owners: the constraint that each row belongs to ``[rows]``.
    """

    def __init__(self, objective: Metric, constraints: Sequence[Constraint], max_table: int) -> None:
        loss = tables_of(objective, max_table)
        sums = [tables_of(c.metric, max_table) for c in constraints]
        steps = [steps_of(c.metric) for c in constraints]
        scopes = [scope for tables in (loss, *sums, *steps) for scope, _ in tables]
        self.cliques = Cliques.of(objective.space, scopes, max_table)
        self.loss = -self.cliques.summed(loss)
        self.constant = _constant(objective, loss)
        rows, owners = [], []
        for number, (own, more) in enumerate(zip(sums, steps, strict=True)):
            base = self.cliques.summed(own)
            maxima = self.cliques.largest(more)
            rows.extend([self._with(base, clique, values) for clique, values in maxima.items()] or [base])
            owners.extend([number] * max(1, len(maxima)))
        constants = [_constant(c.metric, own) for c, own in zip(constraints, sums, strict=True)]
        self.costs = np.stack(rows)
        self.owners = np.array(owners)
        self.constants = np.array(constants)[self.owners]

    def _with(self, base: FloatArray, clique: int, values: FloatArray) -> FloatArray:
        row = base.copy()
        row[self.cliques.starts[clique] : self.cliques.starts[clique + 1]] += values
        return row

    @cached_property
    def reduced_loss(self) -> Reduced:
        """The loss alone."""
        return reduce(self.cliques, self.loss[None])

    @cached_property
    def reduced_costs(self) -> Reduced:
        """Each row alone, without its constant."""
        return reduce(self.cliques, self.costs)

    @cached_property
    def highest(self) -> FloatArray:
        """The highest value of each row over all SubNets ``[rows]``."""
        return np.asarray(self.constants - reduce(self.cliques, -self.costs).least)

    @cached_property
    def range_of_loss(self) -> float:
        """The highest loss of a SubNet minus the least."""
        return float(-reduce(self.cliques, -self.loss[None]).least[0] - self.reduced_loss.least[0])

    def losses(self, rows: IntArray) -> FloatArray:
        """Negated objective ``[n]``, without its constant, of SubNets ``[n, variables]``."""
        return np.asarray(self.loss[self.cliques.entries_of(rows)].sum(axis=1))

    def values(self, rows: IntArray) -> FloatArray:
        """Values ``[n, rows]`` of SubNets ``[n, variables]``."""
        return np.asarray(self.costs[:, self.cliques.entries_of(rows)].sum(axis=2).T + self.constants)


def _constant(metric: Metric | PeakMemory, tables: Tables) -> float:
    """What a metric adds to its tables."""
    plain = metric.resident if isinstance(metric, PeakMemory) else metric
    row = largest(metric.space).to_array()
    tabled = sum(float(table[tuple(row[list(scope)])]) for scope, table in tables)
    baseline = metric.baseline if isinstance(metric, PeakMemory) else 0.0
    return float(plain.linear(row)[0]) - tabled + baseline
