"""The front of two or three metrics of a finished run, under limits of any metrics.

The front is proven where all metrics are sums of terms or peak memory (``exact``). Where one is not, where the terms
couple too many variables, or where ``search.exact`` is ``never``, NSGA-II searches for the front of two metrics.

In the genetic search a SubNet that breaks limits is worse than every SubNet that keeps them, by the sum of its
excesses, so that the search first finds the limits and then the front within them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.metric import FloatArray, Metric
from autotailor.ir.space.subnet import IntArray, SubNet, largest, smallest, stack
from autotailor.ir.space.variable import Space
from autotailor.runs.folder import RunError
from autotailor.runs.fronts import exact
from autotailor.runs.fronts.answer import FrontAnswer, Limit
from autotailor.runs.fronts.exact import Exact
from autotailor.runs.known_metric import KnownMetric, Predictor
from autotailor.search import Objectives, SearchConfig, SearchError
from autotailor.search.constrained.question import WITHIN
from autotailor.search.front import non_dominated
from autotailor.search.genetic import genetic_front

GENETIC = "NSGA-II with penalties for broken limits"

WORSE = 1e6
"""What a SubNet that breaks limits is worse by at least, in ranges of a metric."""


def find_front(
    metrics: Mapping[str, KnownMetric], names: Sequence[str], limits: tuple[Limit, ...], config: SearchConfig
) -> FrontAnswer:
    """The front of two or three metrics under limits.

    Of two metrics it has at most ``config.points`` SubNets, spread over the first metric.

    Args:
        metrics: of the run, by name.
        names: of the two or three metrics.
        limits: bounds of any metrics.
        config: of the search.

    Raises:
        RunError: a metric is unknown or named twice, or no SubNet was found that keeps the limits; or three metrics
            have no exact front.
    """
    _check(metrics, names, limits)
    space = metrics[names[0]].metric.space
    result = _exact(metrics, names, limits, config) or _genetic(metrics, names, limits, config)
    kept = result.rows[_keep(result.rows, metrics, limits)]
    if not len(kept):
        near = result.rows if result.nearest is None else result.nearest[None]
        raise RunError(_impossible(near, metrics, limits))
    x, y = names[:2]
    z = names[2] if len(names) == 3 else None
    rows = _best(kept, metrics[x], metrics[y], config.points) if z is None else _sorted(kept, metrics, x)
    subnets = tuple(SubNet.from_array(space, row) for row in rows)
    points = tuple({name: metric.estimate(subnet) for name, metric in metrics.items()} for subnet in subnets)
    return FrontAnswer(x, y, z, limits, points, subnets, result.is_exact, result.method, result.gap)


def _check(metrics: Mapping[str, KnownMetric], names: Sequence[str], limits: Sequence[Limit]) -> None:
    for name in (*names, *(limit.metric for limit in limits)):
        if not isinstance(name, str) or name not in metrics:
            raise RunError(f"metric {name!r}: the run cannot predict it; known are {', '.join(metrics)}")
    if len(set(names)) != len(names):
        raise RunError(f"front of {', '.join(names)}: name different metrics of {', '.join(metrics)}")


def _exact(
    metrics: Mapping[str, KnownMetric], names: Sequence[str], limits: Sequence[Limit], config: SearchConfig
) -> Exact | None:
    """The proven front; None where there is none."""
    if config.exact == "never" or not exact.is_possible(metrics, names, limits):
        return None
    both = [metrics[name] for name in names]
    is_plain = len(names) == 2 and all(isinstance(metric.metric, Metric) for metric in both)
    ends = [limit.metric in names and limit.is_lower == metrics[limit.metric].is_best_high for limit in limits]
    try:
        if is_plain and all(ends):  # such limits cut off ends of the front and leave the rest as it is
            whole = exact.eliminate(both[0], both[1], config)
            if whole.is_exact and _keep(whole.rows, metrics, limits).any():
                return whole
        return exact.constrain(metrics, names, limits, config)
    except SearchError:
        return None


def _genetic(
    metrics: Mapping[str, KnownMetric], names: Sequence[str], limits: tuple[Limit, ...], config: SearchConfig
) -> Exact:
    """The front that NSGA-II finds, and the ends of the space."""
    if len(names) != 2:
        raise RunError(
            f"front of {', '.join(names)}: three metrics need an exact search, which search.exact=never or terms over "
            "too many variables rule out; ask for two metrics and limit the third with --limit"
        )
    x, y = names
    space = metrics[x].metric.space
    ends = stack([largest(space), smallest(space)])
    rows = np.unique(np.concatenate([ends, search(metrics, x, y, limits, config)]), axis=0)
    return Exact(rows, None, False, GENETIC, None)


def _keep(rows: IntArray, metrics: Mapping[str, KnownMetric], limits: Sequence[Limit]) -> npt.NDArray[np.bool_]:
    kept = np.ones(len(rows), dtype=bool)
    for limit in limits:
        kept &= limit.excess(metrics[limit.metric].metric.predict(rows)) <= WITHIN
    return kept


def _sorted(rows: IntArray, metrics: Mapping[str, KnownMetric], name: str) -> IntArray:
    """Rows by rising values of a metric."""
    return rows[np.argsort(metrics[name].metric.predict(rows), kind="stable")]


def _best(rows: IntArray, x: KnownMetric, y: KnownMetric, points: int) -> IntArray:
    """The rows that no other row beats, by rising x, thinned to some points."""
    costs, gains = x.sign * x.metric.predict(rows), -y.sign * y.metric.predict(rows)
    kept = non_dominated(costs, gains)
    if len(kept) > points:
        at = np.searchsorted(costs[kept], np.linspace(costs[kept[0]], costs[kept[-1]], points), side="right") - 1
        kept = kept[np.unique(np.clip(at, 0, len(kept) - 1))]
    return rows[kept[np.argsort(x.metric.predict(rows[kept]), kind="stable")]]


def _impossible(rows: IntArray, metrics: Mapping[str, KnownMetric], limits: Sequence[Limit]) -> str:
    """The message where no SubNet keeps the limits: how near the nearest one comes."""
    values = {limit: metrics[limit.metric].metric.predict(rows) for limit in limits}
    broken = sum((limit.excess(predicted) for limit, predicted in values.items()), np.zeros(len(rows)))
    nearest = int(np.argmin(broken))
    reached = ", ".join(f"{limit.metric} {values[limit][nearest]:.4g} {metrics[limit.metric].unit}" for limit in limits)
    return (
        f"limits {', '.join(map(str, limits))}: no SubNet was found that keeps them; the nearest one has {reached}: "
        "loosen the limits, or offer smaller choices in model.space"
    )


@dataclass(frozen=True, eq=False)
class _Penalised:
    """A metric that is worse by a penalty where limits are broken, for the genetic search.

    Attributes:
        metric: the metric.
        sign: 1 for a metric of which less is better, -1 for one of which more is better.
        limits: each with the metric that it bounds.
        penalty: what a broken limit costs at least.
        direction: 1 where the genetic search minimises the result, -1 where it maximises it.
    """

    metric: Predictor
    sign: float
    limits: tuple[tuple[Limit, Predictor], ...]
    penalty: float
    direction: float

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
        return np.asarray(self.direction * (values + self.penalty * (broken + (broken > 0))), dtype=np.float64)

    linear = predict


def search(
    metrics: Mapping[str, KnownMetric], x: str, y: str, limits: tuple[Limit, ...], config: SearchConfig
) -> IntArray:
    """SubNets ``[n, variables]`` that NSGA-II finds."""
    bounds = tuple((limit, metrics[limit.metric].metric) for limit in limits)
    ends = stack([largest(metrics[x].metric.space), smallest(metrics[x].metric.space)])

    def penalised(name: str, direction: float) -> Any:
        values = metrics[name].metric.predict(ends)
        penalty = WORSE * max(float(np.ptp(values)), 1e-9)
        return _Penalised(metrics[name].metric, metrics[name].sign, bounds, penalty, direction)

    return genetic_front(Objectives(penalised(y, -1.0), penalised(x, 1.0)), config).indices
