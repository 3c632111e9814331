"""The front of any two metrics of a finished run, under limits of any metrics.

Two sums of terms without other limits have an exact front, by variable elimination. Where a metric is no sum of terms
(peak memory), or further metrics are limited, NSGA-II searches, and the exact front of the two sums takes part with its
SubNets that keep the limits. In the genetic search a SubNet that breaks limits is worse than every SubNet that keeps
them, by the sum of its excesses, so that the search first finds the limits and then the front within them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.metric import FloatArray, Metric
from autotailor.ir.space.subnet import IntArray, SubNet, largest, smallest, stack
from autotailor.ir.space.variable import Space
from autotailor.runs.errors import RunError
from autotailor.runs.known_metric import Estimate, KnownMetric, Predictor
from autotailor.search import Objectives, SearchConfig, SearchError, exact_front
from autotailor.search.front import non_dominated
from autotailor.search.genetic import genetic_front

WORSE = 1e6
"""What a SubNet that breaks limits is worse by at least, in ranges of a metric."""


@dataclass(frozen=True)
class Limit:
    """A bound of one metric.

    Attributes:
        metric: its name.
        value: in the metric's unit.
        is_lower: whether values below are refused; else values above.
    """

    metric: str
    value: float
    is_lower: bool = False

    def excess(self, values: FloatArray) -> FloatArray:
        """By what share of the bound each of the values ``[n]`` breaks it; 0 where the value keeps it."""
        over = (self.value - values) if self.is_lower else (values - self.value)
        return np.asarray(np.maximum(over, 0.0) / max(abs(self.value), 1e-12), dtype=np.float64)

    def __str__(self) -> str:
        return f"{self.metric}{'>=' if self.is_lower else '<='}{self.value:g}"


def read_limit(text: str) -> Limit:
    """A limit such as ``memory<=2`` or ``accuracy>=90``.

    Raises:
        RunError: the text is no limit.
    """
    found = re.fullmatch(r"\s*(\w+)\s*(<=|>=)\s*([^<>=]+)", text)
    try:
        return Limit(found[1], float(found[3]), found[2] == ">=")  # type: ignore[index]
    except (TypeError, ValueError) as error:
        raise RunError(f"limit {text!r}: expected METRIC<=NUMBER or METRIC>=NUMBER, such as 'memory<=2'") from error


@dataclass(frozen=True, eq=False)
class FrontAnswer:
    """SubNets that no other SubNet beats in both metrics, by rising first metric.

    Attributes:
        x: name of the first metric.
        y: name of the second.
        limits: that all SubNets keep, as predicted.
        points: for each SubNet all its predictions, by name of the metric.
        subnets: the SubNets.
        is_exact: whether no other SubNet of the space beats one of these in both metrics.
        method: how the front was found.
    """

    x: str
    y: str
    limits: tuple[Limit, ...]
    points: tuple[Mapping[str, Estimate], ...]
    subnets: tuple[SubNet, ...]
    is_exact: bool
    method: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; the sources of the metrics stand once, under ``metrics``."""
        metrics = {name: (each.unit, each.source) for point in self.points[:1] for name, each in point.items()}
        return {
            "x": self.x,
            "y": self.y,
            "limits": [str(limit) for limit in self.limits],
            "exact": self.is_exact,
            "method": self.method,
            "metrics": {name: {"unit": unit, "source": source} for name, (unit, source) in metrics.items()},
            "points": [
                {
                    "subnet": subnet.id,
                    "assignment": subnet.assignment,
                    **{n: {"value": e.value, "standard_error": e.standard_error} for n, e in point.items()},
                }
                for subnet, point in zip(self.subnets, self.points, strict=True)
            ],
        }


@dataclass(frozen=True, eq=False)
class _Penalised:
    """A metric that is worse by a penalty where limits are broken, for the genetic search.

    Attributes:
        metric: the metric.
        sign: 1 for a metric that is minimised, -1 for one that is maximised; the result is always to be minimised.
        limits: each with the metric that it bounds.
        penalty: what a broken limit costs at least.
        wanted: sign of the result: 1 to be minimised, -1 to be maximised.
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


def find_front(
    metrics: Mapping[str, KnownMetric], x: str, y: str, limits: tuple[Limit, ...], config: SearchConfig
) -> FrontAnswer:
    """The front of two metrics under limits; at most ``config.points`` SubNets, spread over the first metric.

    Args:
        metrics: of the run, by name.
        x: name of the first metric.
        y: name of the second.
        limits: bounds of any metrics.
        config: of the search.

    Raises:
        RunError: a metric is unknown, both are the same, or no SubNet was found that keeps the limits.
    """
    for name in (x, y, *(limit.metric for limit in limits)):
        if name not in metrics:
            raise RunError(f"metric {name!r}: the run cannot predict it; known are {', '.join(metrics)}")
    if x == y:
        raise RunError(f"front of {x} and {x}: name two different metrics of {', '.join(metrics)}")
    space = metrics[x].metric.space
    pool = [stack([largest(space), smallest(space)])]
    exact, is_whole = _exact(metrics[x], metrics[y], config)
    pool.append(exact)
    is_exact = is_whole and {limit.metric for limit in limits} <= {x, y}
    if not is_exact:
        pool.append(_genetic(metrics, x, y, limits, config))
    rows = np.unique(np.concatenate(pool), axis=0)
    kept = rows[_keep(rows, metrics, limits)]
    if not len(kept):
        raise RunError(_impossible(rows, metrics, limits))
    found = _best(kept, metrics[x], metrics[y], config.points)
    subnets = tuple(SubNet.from_array(space, row) for row in found)
    points = tuple({name: metric.estimate(subnet) for name, metric in metrics.items()} for subnet in subnets)
    method = "variable elimination" if is_exact else "NSGA-II with penalties for broken limits"
    return FrontAnswer(x, y, limits, points, subnets, is_exact, method)


def _sign(metric: KnownMetric) -> float:
    """1 for a metric that is minimised, -1 for one that is maximised."""
    return -1.0 if metric.is_best_high else 1.0


def _scaled(metric: Metric, factor: float) -> Metric:
    """The metric's sum of terms times 1 or -1; the link is left out, which keeps or turns the order."""
    terms = tuple(replace(term, table=factor * term.table) for term in metric.terms)
    return Metric(metric.name, metric.unit, metric.space, terms, factor * metric.constant)


def _exact(x: KnownMetric, y: KnownMetric, config: SearchConfig) -> tuple[IntArray, bool]:
    """SubNets ``[n, variables]`` of the exact front of two metrics, and whether it is exact; else none."""
    if isinstance(x.metric, Metric) and isinstance(y.metric, Metric) and config.exact != "never":
        objectives = Objectives(_scaled(y.metric, -_sign(y)), _scaled(x.metric, _sign(x)))
        try:
            found = exact_front(objectives, config.exact_points, config.exact_table)
        except SearchError:
            return np.zeros((0, len(x.metric.space)), dtype=np.int64), False
        return found.front.indices, found.slack == 0.0
    return np.zeros((0, len(x.metric.space)), dtype=np.int64), False


def _genetic(
    metrics: Mapping[str, KnownMetric], x: str, y: str, limits: tuple[Limit, ...], config: SearchConfig
) -> IntArray:
    """SubNets ``[n, variables]`` that NSGA-II finds."""
    bounds = tuple((limit, metrics[limit.metric].metric) for limit in limits)
    ends = stack([largest(metrics[x].metric.space), smallest(metrics[x].metric.space)])

    def penalised(name: str, wanted: float) -> Any:
        values = metrics[name].metric.predict(ends)
        penalty = WORSE * max(float(np.ptp(values)), 1e-9)
        return _Penalised(metrics[name].metric, _sign(metrics[name]), bounds, penalty, wanted)

    return genetic_front(Objectives(penalised(y, -1.0), penalised(x, 1.0)), config).indices


def _keep(rows: IntArray, metrics: Mapping[str, KnownMetric], limits: tuple[Limit, ...]) -> npt.NDArray[np.bool_]:
    kept = np.ones(len(rows), dtype=bool)
    for limit in limits:
        kept &= limit.excess(metrics[limit.metric].metric.predict(rows)) == 0
    return kept


def _best(rows: IntArray, x: KnownMetric, y: KnownMetric, points: int) -> IntArray:
    """The rows that no other row beats, by rising x, thinned to some points."""
    costs, gains = _sign(x) * x.metric.predict(rows), -_sign(y) * y.metric.predict(rows)
    found = non_dominated(costs, gains)
    if len(found) > points:
        at = np.searchsorted(costs[found], np.linspace(costs[found[0]], costs[found[-1]], points), side="right") - 1
        found = found[np.unique(np.clip(at, 0, len(found) - 1))]
    return rows[found[np.argsort(x.metric.predict(rows[found]), kind="stable")]]


def _impossible(rows: IntArray, metrics: Mapping[str, KnownMetric], limits: tuple[Limit, ...]) -> str:
    """The message where no SubNet keeps the limits: how near the nearest one comes."""
    values = {limit: metrics[limit.metric].metric.predict(rows) for limit in limits}
    broken = sum((limit.excess(found) for limit, found in values.items()), np.zeros(len(rows)))
    nearest = int(np.argmin(broken))
    reached = ", ".join(f"{limit.metric} {values[limit][nearest]:.4g} {metrics[limit.metric].unit}" for limit in limits)
    return (
        f"limits {', '.join(map(str, limits))}: no SubNet was found that keeps them; the nearest one has {reached}: "
        "loosen the limits, or offer smaller choices in model.space"
    )
