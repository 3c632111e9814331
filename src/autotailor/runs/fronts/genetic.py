"""A front under limits by the genetic search, for metrics that are neither sums of terms nor peak memory.

In the genetic search a SubNet that breaks limits is worse than every SubNet that keeps them, by the sum of its
excesses, so that the search first finds the limits and then the front within them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import IntArray, largest, smallest, stack
from autotailor.ir.space.variable import Space
from autotailor.runs.fronts.limit import Limit
from autotailor.runs.known_metric import KnownMetric, Predictor
from autotailor.search import Objectives, SearchConfig
from autotailor.search.genetic import genetic_front

WORSE = 1e6
"""What a SubNet that breaks limits is worse by at least, in ranges of a metric."""


@dataclass(frozen=True, eq=False)
class _Penalised:
    """A metric that is worse by a penalty where limits are broken, for the genetic search.

    Attributes:
        metric: the metric.
        sign: 1 for a metric of which less is better, -1 for one of which more is better.
        limits: each with the metric that it bounds.
        penalty: what a broken limit costs at least.
        wanted: 1 where the genetic search minimises the result, -1 where it maximises it.
    """

    metric: Predictor
    sign: float
    limits: tuple[tuple[Limit, Predictor], ...]
    penalty: float
    wanted: float

    @property
    def space(self) -> Space:
        return self.metric.space

    @property
    def name(self) -> str:
        return "penalised"

    @property
    def unit(self) -> str:
        return ""

    def predict(self, subnets: npt.ArrayLike) -> FloatArray:
        array = np.array(subnets, dtype=np.int64, ndmin=2)
        values = self.sign * self.metric.predict(array)
        broken = np.zeros(len(array))
        for limit, metric in self.limits:
            broken += limit.excess(metric.predict(array))
        return np.asarray(self.wanted * (values + self.penalty * (broken + (broken > 0))), dtype=np.float64)

    linear = predict


def search(
    metrics: Mapping[str, KnownMetric], x: str, y: str, limits: tuple[Limit, ...], config: SearchConfig
) -> IntArray:
    """SubNets ``[n, variables]`` that NSGA-II finds."""
    bounds = tuple((limit, metrics[limit.metric].metric) for limit in limits)
    ends = stack([largest(metrics[x].metric.space), smallest(metrics[x].metric.space)])

    def penalised(name: str, wanted: float) -> Any:
        values = metrics[name].metric.predict(ends)
        penalty = WORSE * max(float(np.ptp(values)), 1e-9)
        return _Penalised(metrics[name].metric, metrics[name].sign, bounds, penalty, wanted)

    return genetic_front(Objectives(penalised(y, -1.0), penalised(x, 1.0)), config).indices
