"""The best SubNet within a budget of several limits, or within the nearest budget that can be met."""

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from autotailor.ir.space.subnet import SubNet
from autotailor.search.budgets import nearest_limit
from autotailor.search.config import SearchConfig, SearchError
from autotailor.search.constrained.program import Constraint
from autotailor.search.constrained.solver import Best, Solver
from autotailor.search.front import Front, Objectives
from autotailor.search.joint.limits import Limits
from autotailor.search.robust.forecast import AS_PREDICTED, LatencyForecast

log = logging.getLogger(__name__)

CLOSE = 0.002
"""Share of a raise that is not looked for any more."""
ATTEMPTS = 50
"""Raises of a budget: the confidence asked for moves the limit of the predicted cost, so that one may not do."""


@dataclass(frozen=True, eq=False)
class Reached:
    """A budget that a SubNet keeps.

    Attributes:
        budget: of the measured cost, in its unit.
        limits: beside it.
        raised: the factor by which both were raised; 1 where the budget asked for can be met.
        best: the SubNet with the best predicted accuracy within it.
    """

    budget: float
    limits: Limits
    raised: float
    best: SubNet


class Reach:
    """Answers budgets with limits one after another; all with limits of the same metrics share the tables of a solver.

    Args:
        objectives: predicted accuracy and cost.
        front: of the search.
        config: of the search.
        forecast: of measured costs; SubNets keep their budgets with its confidence.
    """

    def __init__(
        self, objectives: Objectives, front: Front, config: SearchConfig, forecast: LatencyForecast = AS_PREDICTED
    ) -> None:
        self._objectives, self._front, self._config, self._forecast = objectives, front, config, forecast
        self._solvers: dict[tuple[str, ...], Solver] = {}

    def nearest(self, budget: float, limits: Limits) -> Reached:
        """The best SubNet within a budget and limits, all raised by the same factor where no SubNet keeps them.

        Args:
            budget: of the measured cost.
            limits: one at least, of further metrics.

        Raises:
            SearchError: the terms couple too many variables, and no SubNet of the front keeps the limits.
        """
        try:
            solver = self._solver(limits)
        except SearchError as error:
            return _on_front(self._front, budget, limits, self._forecast, error)

        def within(factor: float) -> Best:
            cost = nearest_limit(self._front, budget * factor, self._forecast)
            return solver.best(np.array([cost, *limits.raised(factor).values]))

        missed, factor, answer = 1.0, 1.0, within(1.0)
        for _ in range(ATTEMPTS):
            if answer.raised == 0.0:
                break
            missed, factor = factor, factor * (1.0 + max(answer.raised, 1e-9))
            answer = within(factor)
        if factor > 1.0:
            factor, answer = _least(within, missed, factor, answer)
        subnet = SubNet.from_array(self._objectives.space, answer.row)
        return Reached(budget * factor, limits.raised(factor), factor, subnet)

    def _solver(self, limits: Limits) -> Solver:
        if limits.names not in self._solvers:
            constraints = [Constraint(self._objectives.cost), *map(Constraint, limits.metrics)]
            table = self._config.exact_table
            self._solvers[limits.names] = Solver(self._objectives.accuracy, constraints, max_table=table)
        return self._solvers[limits.names]


def _least(within: Callable[[float], Best], missed: float, kept: float, best: Best) -> tuple[float, Best]:
    """The least factor that can be kept, by ``CLOSE`` of it at most, and what is best within it.

    The limit of the predicted cost need not rise by as much as the budget that it follows from, so that a factor by
    which the limits must rise is more than that by which the budget must.

    Args:
        within: the best within all limits, raised by a factor.
        missed: a factor that is too small.
        kept: a larger factor that can be kept.
        best: the best within it.
    """
    middle = kept * (1.0 - CLOSE / 2)  # the first guess: the factor is the least one where both rise alike
    while kept > missed * (1.0 + CLOSE):
        answer = within(middle)
        if answer.raised == 0.0:
            kept, best = middle, answer
        else:
            missed = middle
        middle = math.sqrt(missed * kept)
    return kept, best


def reach_all(
    objectives: Objectives,
    front: Front,
    budgets: Mapping[str, float],
    beside: Mapping[str, Limits],
    config: SearchConfig,
    forecast: LatencyForecast = AS_PREDICTED,
) -> dict[str, Reached]:
    """What is reached for each budget that has limits beside it, by name; a warning tells of each that was raised.

    Args:
        objectives: see ``Reach``.
        front: see ``Reach``.
        budgets: name to the budget of the measured cost.
        beside: name to the limits beside it, empty where there are none.
        config: see ``Reach``.
        forecast: see ``Reach``.
    """
    reached, reach = {}, Reach(objectives, front, config, forecast)
    for name, limits in beside.items():
        if limits:
            reached[name] = reach.nearest(budgets[name], limits)
            if reached[name].raised > 1.0:
                _warn(name, budgets[name], limits, reached[name], objectives.kind.unit)
    return reached


def _warn(name: str, budget: float, limits: Limits, reached: Reached, unit: str) -> None:
    """Says that nothing meets a budget, and which budget takes its place."""
    log.warning(
        "%s: no SubNet keeps %.4g %s and %s at once; the nearest budget that one keeps is %.4g %s and %s (%.4g times "
        "as much), which takes its place: raise the budget, or offer smaller choices in model.space",
        *(name, budget, unit, limits, reached.budget, unit, reached.limits, reached.raised),
    )


def _on_front(front: Front, budget: float, limits: Limits, forecast: LatencyForecast, error: SearchError) -> Reached:
    """The best SubNet of the front within the limits, where the exact search cannot be used."""
    kept = np.flatnonzero(limits.keep(front.indices) & (front.cost <= nearest_limit(front, budget, forecast)))
    if not len(kept):
        raise SearchError(
            f"budget of {budget:.4g} and {limits}: no SubNet of the front keeps it, and the exact search cannot be "
            f"used ({error}); raise the budget"
        )
    best = SubNet.from_array(front.space, front.indices[kept[int(np.argmax(front.accuracy[kept]))]])
    return Reached(budget, limits, 1.0, best)
