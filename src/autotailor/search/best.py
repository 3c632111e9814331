"""The best SubNet at each budget, for one metric of accuracy after another."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import numpy as np

from autotailor.ir.space.metric import Metric
from autotailor.ir.space.subnet import IntArray
from autotailor.search.budgets import Budgets, budget_limits, predicted_limit
from autotailor.search.config import SearchConfig
from autotailor.search.elimination import exact_front
from autotailor.search.errors import SearchError
from autotailor.search.front import Front, Objectives
from autotailor.search.joint.limits import Further, all_limits
from autotailor.search.joint.reach import reach
from autotailor.search.robust.forecast import AS_PREDICTED, LatencyForecast


def best_at(
    cost: Metric,
    budgets: Budgets,
    config: SearchConfig,
    forecast: LatencyForecast = AS_PREDICTED,
    further: Further = MappingProxyType({}),
) -> Callable[[Metric], IntArray]:
    """A function from a metric of accuracy to choice indices of the most accurate SubNet at each budget.

    Args:
        cost: that the budgets limit.
        budgets: see ``budget_limits``.
        config: the front is exact where the configuration and the space allow it, else that of the genetic search.
        forecast: of measured costs.
        further: metrics that budgets limit beside the cost.

    Returns:
        The function; its result has the shape ``[budgets, variables]``.
    """

    def best(accuracy: Metric) -> IntArray:
        objectives = Objectives(accuracy, cost)
        front = _front(objectives, config)
        named = budget_limits(objectives, front, budgets, forecast)
        beside = all_limits(budgets, objectives.kind, further)

        def row(name: str, value: float) -> IntArray:
            if beside[name]:
                return reach(objectives, front, value, beside[name], config, forecast).best.to_array()
            position = front.position(predicted_limit(front, value, name, forecast))
            return np.asarray(front.indices[position], dtype=np.int64)

        return np.stack([row(name, value) for name, value in named.items()])

    return best


def _front(objectives: Objectives, config: SearchConfig) -> Front:
    if config.exact != "never":
        try:
            return exact_front(objectives, config.exact_points, config.exact_table).front
        except SearchError:
            if config.exact == "always":
                raise
    from autotailor.search.genetic import genetic_front

    return genetic_front(objectives, config)
