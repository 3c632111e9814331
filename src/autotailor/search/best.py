"""The best SubNet at each budget, for one metric of accuracy after another."""

from collections.abc import Callable
from types import MappingProxyType

import numpy as np

from autotailor.ir.space.metric import Metric
from autotailor.ir.space.subnet import IntArray
from autotailor.search.budgets import budget_limits, forecasts, predicted_limit
from autotailor.search.config import SearchConfig
from autotailor.search.elimination import exact_or_reason
from autotailor.search.front import Front, Objectives
from autotailor.search.joint.limits import all_limits
from autotailor.search.joint.reach import Reach
from autotailor.search.metrics import Budgets, Further
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
        judging = forecasts(budgets, objectives.kind.name, forecast)
        reach = Reach(objectives, front, config, forecast)

        def row(name: str, value: float) -> IntArray:
            if beside[name]:
                return reach.nearest(value, beside[name]).best.to_array()
            position = front.position(predicted_limit(front, value, name, judging[name]))
            return np.asarray(front.indices[position], dtype=np.int64)

        return np.stack([row(name, value) for name, value in named.items()])

    return best


def _front(objectives: Objectives, config: SearchConfig) -> Front:
    exact, _ = exact_or_reason(objectives, config)
    if exact is not None:
        return exact.front
    from autotailor.search.genetic import genetic_front

    return genetic_front(objectives, config)
