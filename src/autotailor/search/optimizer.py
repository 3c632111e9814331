"""Rule search: metrics to Pareto front (paper, section 4.3.2)."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from pymoo.indicators.hv import HV

from autotailor.artifacts import write_json
from autotailor.ir.space.metric import FloatArray
from autotailor.search.config import SearchConfig
from autotailor.search.elimination import ExactFront, exact_front
from autotailor.search.errors import SearchError
from autotailor.search.front import Front, Objectives, merge
from autotailor.search.genetic import genetic_front

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Yardstick:
    """How far the genetic search is from the optimum under the same predictors; None where that is unknown.

    Attributes:
        genetic_subnets: SubNets on the genetic front.
        exact_subnets: SubNets on the exact front.
        hypervolume_ratio: hypervolume of the genetic front over that of the exact one, in (0, 1].
        largest_gap: most accuracy, in points, that the genetic front leaves behind at any latency budget.
        mean_gap: the same, on average over the budgets.
        slack_ms: 0 where the yardstick is exact, else its bound in latency (see ExactFront).
        reason: why there is no yardstick; empty where there is one.
    """

    genetic_subnets: int
    exact_subnets: int | None = None
    hypervolume_ratio: float | None = None
    largest_gap: float | None = None
    mean_gap: float | None = None
    slack_ms: float | None = None
    reason: str = ""


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What the search found.

    Attributes:
        front: the best of both searches at ``points`` latency budgets spread over the reachable range.
        genetic: all of the genetic front.
        exact: all of the exact front, where the space allows one.
        yardstick: the first measured with the second.
    """

    front: Front
    genetic: Front
    exact: ExactFront | None
    yardstick: Yardstick

    def write(self, pareto: Path, yardstick: Path | None = None) -> None:
        """Writes ``pareto.csv`` and, next to it, the yardstick as JSON; each whole or not at all."""
        self.front.write(pareto)
        if yardstick is not None:
            write_json(yardstick, asdict(self.yardstick))

    def metrics(self) -> dict[str, float]:
        """What is worth tracking: how many SubNets the front has, and the numbers of the yardstick that are known."""
        numbers = {key: value for key, value in asdict(self.yardstick).items() if isinstance(value, int | float)}
        return {"front": len(self.front), **numbers}


def search(objectives: Objectives, config: SearchConfig | None = None) -> SearchResult:
    """Searches a space for the most accurate SubNets at every latency.

    Args:
        objectives: accuracy and latency, and metrics to report beside them.
        config: section ``search`` of the configuration.

    Raises:
        SearchError: a metric is not finite, or ``search.exact=always`` on a space that is too coupled for it.
    """
    config = config or SearchConfig()
    _check(objectives)
    genetic = genetic_front(objectives, config)
    exact, reason = _exact(objectives, config)
    if exact is None:
        return SearchResult(genetic.spread(config.points), genetic, None, Yardstick(len(genetic), reason=reason))
    front = merge(genetic, exact.front).spread(config.points)
    return SearchResult(front, genetic, exact, _yardstick(genetic, exact, config.points))


def _check(objectives: Objectives) -> None:
    """Every number of every table is finite."""
    for metric in (objectives.accuracy, objectives.latency, *objectives.further):
        for term in metric.terms:
            if not np.isfinite(term.table).all():
                raise SearchError(
                    f"metric {metric.name}, term {term.label!r}: expected finite numbers, found NaN or "
                    f"infinity; "
                    "delete the artifact that it comes from and run its stage again"
                )


def _exact(objectives: Objectives, config: SearchConfig) -> tuple[ExactFront | None, str]:
    """The exact front, or why there is none."""
    if config.exact == "never":
        return None, "search.exact=never"
    try:
        return exact_front(objectives, config.exact_points, config.exact_table), ""
    except SearchError as error:
        if config.exact == "always":
            raise
        log.warning("%s", error)
        return None, str(error)


def _yardstick(genetic: Front, exact: ExactFront, points: int) -> Yardstick:
    """Measures the genetic front with the exact one."""
    best = exact.front
    low = max(genetic.latency[0], best.latency[0])
    budgets = np.linspace(low, max(genetic.latency[-1], best.latency[-1]), points)
    gaps = [best.accuracy[best.position(b)] - genetic.accuracy[genetic.position(b)] for b in budgets]
    return Yardstick(
        genetic_subnets=len(genetic),
        exact_subnets=len(best),
        hypervolume_ratio=hypervolume_ratio(genetic, best),
        largest_gap=max(0.0, float(np.max(gaps))),
        mean_gap=max(0.0, float(np.mean(gaps))),
        slack_ms=exact.slack_ms,
    )


def hypervolume_ratio(front: Front, best: Front) -> float:
    """Hypervolume of ``front`` over that of ``best``.

    The reference lies 10 % beyond the worst of either front. Both objectives are scaled by the range
    of both fronts together, so that units do not matter.
    """
    sides = [np.stack([f.latency, -f.accuracy], axis=1) for f in (front, best)]
    together = np.concatenate(sides)
    low, span = together.min(axis=0), np.ptp(together, axis=0)
    span[span == 0] = 1.0
    indicator = HV(ref_point=np.array([1.1, 1.1]))
    of_front, of_best = (float(indicator(_scaled(side, low, span))) for side in sides)
    return of_front / of_best


def _scaled(values: FloatArray, low: FloatArray, span: FloatArray) -> FloatArray:
    """Objectives scaled to 0..1."""
    return (values - low) / span
