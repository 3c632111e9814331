"""Limits that a budget sets beside the cost: ``{latency: 5, peak_memory: "50%", parameters: "2M"}``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.subnet import IntArray, SubNet, largest
from autotailor.search.budgets import EXPECTED, WORST, budget_names, of_exits, read_budget
from autotailor.search.config import SearchError
from autotailor.search.cost import Cost
from autotailor.search.metrics import METRICS, Budget, Budgets, Further
from autotailor.search.robust.forecast import ROUNDING

if TYPE_CHECKING:
    from autotailor.ir.metrics.memory import PeakMemory
    from autotailor.ir.space.metric import Metric


@dataclass(frozen=True, eq=False)
class Limits:
    """Upper limits of predicted metrics; without metrics every SubNet keeps them.

    Attributes:
        names: as in budgets.
        metrics: that are limited.
        values: the limits, in the units of the metrics.
    """

    names: tuple[str, ...] = ()
    metrics: tuple[Metric | PeakMemory, ...] = ()
    values: tuple[float, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.names)

    def keep(self, rows: IntArray) -> npt.NDArray[np.bool_]:
        """Whether SubNets ``[n, variables]`` keep the limits: ``[n]``."""
        kept = np.ones(len(rows), dtype=bool)
        for metric, value in zip(self.metrics, self.values, strict=True):
            kept &= metric.predict(rows) <= value * (1 + ROUNDING)
        return kept

    def allow(self, subnet: SubNet) -> bool:
        """Whether one SubNet keeps the limits."""
        return bool(self.keep(subnet.to_array()[None])[0])

    def raised(self, factor: float) -> Limits:
        """All limits times a factor."""
        return replace(self, values=tuple(value * factor for value in self.values))

    @property
    def named(self) -> dict[str, float]:
        """Names to limits."""
        return dict(zip(self.names, self.values, strict=True))

    def __str__(self) -> str:
        each = zip(self.names, self.values, self.metrics, strict=True)
        return ", ".join(f"{name} {value:.4g} {metric.unit}" for name, value, metric in each)


NONE = Limits()


def limits_of(budget: Budget, cost: Cost, further: Further) -> Limits:
    """The limits that one budget sets beside the cost.

    Raises:
        SearchError: a name is unknown, the cost is missing, a metric cannot be predicted, or a number is invalid.
    """
    if not isinstance(budget, Mapping):
        return NONE
    check_budgets([budget], cost)
    names = tuple(name for name in budget if name != cost.name)
    if missing := [name for name in names if name not in further]:
        remedies = "; ".join(dict.fromkeys(METRICS[name].remedy for name in missing if METRICS[name].remedy))
        raise SearchError(
            f"budget {dict(budget)}: the device's table (lut.csv) does not say {', '.join(missing)}; "
            f"{remedies}: leave this limit out"
        )
    metrics = tuple(further[name] for name in names)
    wholes = [float(metric.predict(largest(metric.space).to_array())[0]) for metric in metrics]
    values = (read_budget(budget[n], whole, METRICS[n].unit) for n, whole in zip(names, wholes, strict=True))
    return Limits(names, metrics, tuple(values))


def all_limits(budgets: Budgets, cost: Cost, further: Further) -> dict[str, Limits]:
    """Name of each budget to the limits that it sets beside the cost; see ``limits_of``."""
    each = [0.0] * budgets if isinstance(budgets, int) else budgets
    limits = (limits_of(budget, cost, further) for budget in each)
    return dict(zip(budget_names(budgets), limits, strict=True))


def check_budgets(budgets: Budgets, cost: Cost, has_exits: bool = False) -> None:
    """Refuses budgets that no search could read, before any work.

    Args:
        budgets: of a run.
        cost: that they limit.
        has_exits: whether the run has early exits, whose expected cost a budget may limit.

    Raises:
        SearchError: a name is unknown, the cost is missing from a budget with names, or a number is invalid.
    """
    for budget in [] if isinstance(budgets, int) else budgets:
        named: Mapping[str, float | str] = budget if isinstance(budget, Mapping) else {cost.name: budget}
        if early := of_exits(budget, cost.name):
            _check_early(named, early, cost, has_exits)
            continue
        there = [spec for spec in METRICS.values() if cost.is_measured or not spec.on_device]
        units = {cost.name: cost.unit, **{spec.name: spec.unit for spec in there}}
        if unknown := [name for name in named if name not in units]:
            raise SearchError(
                f"budget {dict(named)}: unknown {', '.join(map(str, unknown))}; known are {', '.join(units)}: correct "
                "export.budgets"
            )
        if cost.name not in named:
            raise SearchError(
                f"budget {dict(named)}: expected a limit of {cost.name} among its limits; add '{cost.name}: 200%' to "
                "export.budgets where it does not matter, because 100% leaves the largest SubNet no room for noise"
            )
        for name, value in named.items():
            read_budget(value, 1.0, units[name])


def _check_early(
    named: Mapping[str, float | str], early: Mapping[str, float | str], cost: Cost, has_exits: bool
) -> None:
    """Raises SearchError where a budget of the expected cost makes no sense."""
    if not has_exits:
        raise SearchError(
            f"budget {dict(named)}: pictures leave early only in a run with model.space.exits; ask for exits there, or "
            f"limit {cost.name}"
        )
    if EXPECTED not in early or len(early) < len(named):
        raise SearchError(
            f"budget {dict(named)}: expected {cost.name}.{EXPECTED}, and {cost.name}.{WORST} or nothing beside it; "
            "correct export.budgets"
        )
    for value in early.values():
        read_budget(value, 1.0, cost.unit)
