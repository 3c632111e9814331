"""Constraints on metrics, and the SubNets that are found under these constraints."""

from collections.abc import Mapping
from dataclasses import dataclass

from autotailor.ir.metrics.memory import PeakMemory
from autotailor.ir.space.metric import Metric
from autotailor.ir.space.subnet import SubNet

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
