"""The best SubNet within a budget of several limits, or within the nearest budget that can be met."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from autotailor.ir.space.subnet import SubNet
from autotailor.search.config import SearchConfig
from autotailor.search.constrained.constraint import Constraint
from autotailor.search.constrained.solver import Solver
from autotailor.search.errors import SearchError
from autotailor.search.front import Front, Objectives
from autotailor.search.joint.limits import Limits
from autotailor.search.robust.forecast import AS_PREDICTED, ROUNDING, LatencyForecast

log = logging.getLogger(__name__)

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


def reach(
    objectives: Objectives,
    front: Front,
    budget: float,
    limits: Limits,
    config: SearchConfig,
    forecast: LatencyForecast = AS_PREDICTED,
) -> Reached:
    """The best SubNet within a budget and limits, all raised by the same factor where no SubNet keeps them.

    Args:
        objectives: predicted accuracy and cost.
        front: of the search.
        budget: of the measured cost.
        limits: one at least, of further metrics.
        config: of the search.
        forecast: of measured costs; the SubNet keeps the budget with its confidence.

    Raises:
        SearchError: the terms couple too many variables, and no SubNet of the front keeps the limits.
    """
    constraints = [Constraint(objectives.cost), *map(Constraint, limits.metrics)]
    try:
        solver = Solver(objectives.accuracy, constraints, max_table=config.exact_table)
    except SearchError as error:
        return _on_front(front, budget, limits, forecast, error)
    factor = 1.0
    for _ in range(ATTEMPTS):
        wanted = np.array([_predicted(front, budget * factor, forecast), *limits.raised(factor).values])
        found = solver.best(wanted)
        if found.raised == 0.0:
            break
        factor *= 1.0 + max(found.raised, 1e-9)
    subnet = SubNet.from_array(objectives.space, found.row)
    return Reached(budget * factor, limits.raised(factor), factor, subnet)


def reach_all(
    objectives: Objectives,
    front: Front,
    budgets: Mapping[str, float],
    beside: Mapping[str, Limits],
    config: SearchConfig,
    forecast: LatencyForecast = AS_PREDICTED,
) -> dict[str, Reached]:
    """``reach`` for each budget that has limits beside it, by name; a warning tells of each that was raised.

    Args:
        objectives: see ``reach``.
        front: see ``reach``.
        budgets: name to the budget of the measured cost.
        beside: name to the limits beside it, empty where there are none.
        config: see ``reach``.
        forecast: see ``reach``.
    """
    found = {}
    for name, limits in beside.items():
        if limits:
            found[name] = reach(objectives, front, budgets[name], limits, config, forecast)
            if found[name].raised > 1.0:
                _warn(name, budgets[name], limits, found[name], objectives.kind.unit)
    return found


def _warn(name: str, budget: float, limits: Limits, reached: Reached, unit: str) -> None:
    """Says that nothing meets a budget, and which budget takes its place."""
    log.warning(
        "%s: no SubNet keeps %.4g %s and %s at once; the nearest budget that one keeps is %.4g %s and %s (%.4g times "
        "as much), which takes its place: raise the budget, or offer smaller choices in model.space",
        *(name, budget, unit, limits, reached.budget, unit, reached.limits, reached.raised),
    )


def _predicted(front: Front, budget: float, forecast: LatencyForecast) -> float:
    """The largest predicted cost that meets a budget, as ``budgets.predicted_limit``, also where no SubNet meets it."""
    limit, cheapest = forecast.limit(budget), float(front.cost[0])
    return cheapest if limit < cheapest <= budget * (1 + ROUNDING) else limit


def _on_front(front: Front, budget: float, limits: Limits, forecast: LatencyForecast, error: SearchError) -> Reached:
    """The best SubNet of the front within the limits, where the exact search cannot be used."""
    kept = np.flatnonzero(limits.keep(front.indices) & (front.cost <= _predicted(front, budget, forecast)))
    if not len(kept):
        raise SearchError(
            f"budget of {budget:.4g} and {limits}: no SubNet of the front keeps it, and the exact search cannot be "
            f"used ({error}); raise the budget"
        )
    best = SubNet.from_array(front.space, front.indices[kept[int(np.argmax(front.accuracy[kept]))]])
    return Reached(budget, limits, 1.0, best)
