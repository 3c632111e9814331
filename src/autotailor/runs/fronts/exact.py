"""Fronts of sums of terms and of peak memory, proven under the predictions.

Two sums without other limits have their whole front by variable elimination. Otherwise one sum is the objective, the
other metrics are swept, and the limits constrain (``autotailor.search.constrained_front``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from autotailor.ir.metrics.memory import PeakMemory
from autotailor.ir.space.link import IDENTITY, Link, turned
from autotailor.ir.space.metric import Metric
from autotailor.ir.space.subnet import IntArray
from autotailor.runs.fronts.answer import Gap, Limit
from autotailor.runs.known_metric import KnownMetric
from autotailor.search import Constraint, Objectives, SearchConfig, exact_front
from autotailor.search.constrained.solver import Solver
from autotailor.search.constrained.sweep import sweep

TRIED = 8
"""Limits that a sweep of two metrics tries for each SubNet that it may show."""
POINTS, LEVELS = 64, 24
"""Limits of the first metric at each level of the second, and levels, for three metrics."""


@dataclass(frozen=True, eq=False)
class Exact:
    """SubNets of a front.

    Attributes:
        rows: choice indices ``[n, variables]``; none where no SubNet keeps the limits.
        nearest: of the SubNet that breaks the limits least ``[variables]``; None where some SubNet keeps them.
        is_exact: whether each SubNet is proven.
        method: how they were found.
        gap: what is missing.
    """

    rows: IntArray
    nearest: IntArray | None
    is_exact: bool
    method: str
    gap: Gap | None


def is_possible(metrics: Mapping[str, KnownMetric], names: Sequence[str], limits: Sequence[Limit]) -> bool:
    """Whether all metrics of a question are sums of terms or upper limits of peak memory."""
    involved = [*names, *(limit.metric for limit in limits)]
    lower = {limit.metric for limit in limits if limit.is_lower}
    return all(isinstance(metrics[name].metric, Metric | PeakMemory) for name in involved) and all(
        isinstance(metrics[name].metric, Metric) for name in lower
    )


def eliminate(x: KnownMetric, y: KnownMetric, config: SearchConfig) -> Exact:
    """The whole front of two sums.

    Raises:
        SearchError: their terms couple too many variables.
    """
    objectives = Objectives(_signed(y, -y.sign), _signed(x, x.sign))
    result = exact_front(objectives, config.exact_points, config.exact_table)
    gap = Gap(y.name) if result.slack == 0.0 else None
    return Exact(result.front.indices, None, result.slack == 0.0, "variable elimination", gap)


def constrain(
    metrics: Mapping[str, KnownMetric], names: Sequence[str], limits: Sequence[Limit], config: SearchConfig
) -> Exact:
    """The front of two or three metrics under limits.

    Raises:
        SearchError: the terms couple too many variables.
    """
    objective = _objective(metrics, names)
    axes = [name for name in names if name != objective]
    axes.sort(key=lambda name: isinstance(metrics[name].metric, PeakMemory))  # peak memory has the fewest steps
    constraints = [Constraint(_cost(metrics[name], metrics[name].sign), name) for name in axes]
    for limit in limits:
        constraints.append(Constraint(_cost(metrics[limit.metric], -1.0 if limit.is_lower else 1.0), str(limit)))
    bounds = np.array([np.inf] * len(axes) + [_bound(limit, metrics[limit.metric]) for limit in limits])
    metric = metrics[objective]
    solver = Solver(_signed(metric, -metric.sign, with_link=True), constraints, max_table=config.exact_table)
    points = TRIED * config.points if len(axes) == 1 else POINTS
    swept = sweep(solver, bounds, len(axes), points, LEVELS)
    method = "limits of the other metrics, each answered by branch and bound"
    if swept is None:
        nearest = solver.best(bounds).row
        return Exact(np.zeros((0, len(nearest)), dtype=np.int64), nearest, False, method, None)
    second = axes[1] if len(axes) == 2 else None
    levels = () if second is None else tuple(_link(metrics[second]).value(np.array(swept.levels)).tolist())
    gap = Gap(objective, swept.gap, swept.gap_between, second, levels)
    return Exact(swept.rows, None, bool(swept.proven.all()), method, gap)


def _objective(metrics: Mapping[str, KnownMetric], names: Sequence[str]) -> str:
    """The metric that is best within limits of the others: accuracy where asked for, else the last sum of terms."""
    sums = [name for name in names if isinstance(metrics[name].metric, Metric)]
    return next((name for name in sums if metrics[name].is_best_high), sums[-1])


def _signed(metric: KnownMetric, factor: float, *, with_link: bool = False) -> Metric:
    """A sum of terms times 1 or -1, and its values where it keeps its link."""
    plain = metric.metric
    assert isinstance(plain, Metric)
    terms = tuple(replace(term, table=factor * term.table) for term in plain.terms)
    link = IDENTITY if not with_link else plain.link if factor > 0 else turned(plain.link)
    return Metric(plain.name, plain.unit, plain.space, terms, factor * plain.constant, link)


def _cost(metric: KnownMetric, factor: float) -> Metric | PeakMemory:
    """What a constraint limits: peak memory, or a sum times 1 or -1."""
    return metric.metric if isinstance(metric.metric, PeakMemory) else _signed(metric, factor)


def _link(metric: KnownMetric) -> Link:
    """The link of a sum of terms; peak memory has none."""
    return metric.metric.link if isinstance(metric.metric, Metric) else IDENTITY


def _bound(limit: Limit, metric: KnownMetric) -> float:
    """The limit of ``_cost``; a limit outside the values of a link is one that every or no SubNet keeps."""
    link = _link(metric)
    value = link.linear(np.clip(np.array([limit.value]), *link.ends))
    return float(-value[0] if limit.is_lower else value[0])
