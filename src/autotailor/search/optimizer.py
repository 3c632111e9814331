"""Rule search: the genetic and the exact search for the Pareto front (paper, section 4.3.2)."""

import logging
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pymoo.indicators.hv import HV

from autotailor.artifacts import write_json
from autotailor.ir.space.link import IDENTITY, Link
from autotailor.ir.space.subnet import largest
from autotailor.ir.space.variable import Modification
from autotailor.search.alternatives import BEYOND
from autotailor.search.config import SearchConfig, SearchError
from autotailor.search.cost import LATENCY
from autotailor.search.elimination import ExactFront, exact_or_reason
from autotailor.search.front import Front, Objectives, merge
from autotailor.search.genetic import genetic_front

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Yardstick:
    """The distance of the genetic front from the exact front under the same predictors; None where it is unknown.

    Attributes:
        genetic_subnets: SubNets on the genetic front.
        exact_subnets: SubNets on the exact front.
        hypervolume_ratio: hypervolume of the genetic front over that of the exact one, in (0, 1].
        largest_gap: largest loss of accuracy, in points, of the genetic front at any budget.
        mean_gap: mean loss of accuracy, in points, over all budgets.
        slack: 0 where the exact front is exact, else the bound of its error in cost (see ExactFront).
        suffix: of the key of ``slack``, which says its unit.
        reason: why there is no exact front; empty where there is one.
    """

    genetic_subnets: int
    exact_subnets: int | None = None
    hypervolume_ratio: float | None = None
    largest_gap: float | None = None
    mean_gap: float | None = None
    slack: float | None = None
    reason: str = ""
    suffix: str = LATENCY.suffix

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; the key of the slack says its unit, for instance ``slack_ms``."""
        values = {**asdict(self), f"slack_{self.suffix}": self.slack}
        return {key: value for key, value in values.items() if key not in ("slack", "suffix")}


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The results of both searches.

    Attributes:
        front: the merged fronts of both searches.
        genetic: the whole genetic front.
        exact: the whole exact front; None where it was not computed.
        yardstick: distance of the genetic front from the exact front.
    """

    front: Front
    genetic: Front
    exact: ExactFront | None
    yardstick: Yardstick

    def write(
        self,
        pareto: Path,
        yardstick: Path | None = None,
        regret: Mapping[str, float] | None = None,
        never_faster: Collection[Modification] = (),
        link: Link = IDENTITY,
    ) -> None:
        """Writes ``pareto.csv``, and as JSON the yardstick with what else the search says of itself.

        Args:
            pareto: path of the front.
            yardstick: path of the JSON; None writes none.
            regret: name of each budget to what its choice is expected to lose, points (``Rounds.remaining``).
            never_faster: alternatives that were left out.
            link: from predicted costs to what the device is expected to take.
        """
        self.front.write(pareto, link)
        slow = [str(each) for each in never_faster]
        if yardstick is not None:
            unused = [str(each) for each in self.unused() if each not in never_faster]
            lists = {"never_faster": slow, "never_on_front": unused}
            said = {"regret": dict(regret or {}), **{key: names for key, names in lists.items() if names}}
            write_json(yardstick, self.yardstick.to_dict() | said)

    def unused(self) -> tuple[Modification, ...]:
        """Alternatives that no SubNet on the front has."""
        return tuple(
            Modification(variable.name, choice)
            for column, variable in zip(self.front.indices.T, self.front.space, strict=True)
            for place, choice in enumerate(variable.choices)
            if not variable.is_ordered and place not in {variable.default, *column.tolist()}
        )

    def metrics(self) -> dict[str, float]:
        """Metrics for tracking: the number of SubNets on the front, and the known numbers of the yardstick."""
        numbers = {key: value for key, value in self.yardstick.to_dict().items() if isinstance(value, int | float)}
        return {"front": len(self.front), **numbers}


def search(objectives: Objectives, config: SearchConfig | None = None) -> SearchResult:
    """Searches a space for the most accurate SubNets at every cost.

    Args:
        objectives: accuracy, cost, and further metrics to report.
        config: section ``search`` of the configuration.

    Raises:
        SearchError: a metric is not finite, or ``search.exact=always`` and the terms couple too many variables.
    """
    config = config or SearchConfig()
    _check(objectives)
    genetic = _offered(objectives, genetic_front(objectives, config))
    exact, reason = exact_or_reason(objectives, config)
    if exact is None:
        if config.exact != "never":
            log.warning("%s", reason)
        return SearchResult(genetic, genetic, None, Yardstick(len(genetic), reason=reason, suffix=genetic.kind.suffix))
    exact = replace(exact, front=_offered(objectives, exact.front))
    return SearchResult(merge(genetic, exact.front), genetic, exact, _yardstick(genetic, exact, config.points))


def _offered(objectives: Objectives, front: Front) -> Front:
    """The part of a front that nothing is on which was left out (``without``)."""
    whole = objectives.cost.predict(largest(objectives.space).to_array())[0]
    return front.take(np.flatnonzero(front.cost <= BEYOND / 2 * whole))


def _check(objectives: Objectives) -> None:
    """Raises SearchError unless all numbers of all tables are finite."""
    for metric in (objectives.accuracy, objectives.cost, *objectives.further):
        for term in metric.terms:
            if not np.isfinite(term.table).all():
                raise SearchError(
                    f"metric {metric.name}, term {term.label!r}: expected finite numbers, found NaN or "
                    f"infinity; "
                    "delete the artifact that it comes from and run its stage again"
                )


def _yardstick(genetic: Front, exact: ExactFront, points: int) -> Yardstick:
    """Measures the distance of the genetic front from the exact front."""
    best = exact.front
    low = max(genetic.cost[0], best.cost[0])
    budgets = np.linspace(low, max(genetic.cost[-1], best.cost[-1]), points)
    gaps = [best.accuracy[best.position(b)] - genetic.accuracy[genetic.position(b)] for b in budgets]
    return Yardstick(
        genetic_subnets=len(genetic),
        exact_subnets=len(best),
        hypervolume_ratio=hypervolume_ratio(genetic, best),
        largest_gap=max(0.0, float(np.max(gaps))),
        mean_gap=max(0.0, float(np.mean(gaps))),
        slack=exact.slack,
        suffix=best.kind.suffix,
    )


def hypervolume_ratio(front: Front, best: Front) -> float:
    """Hypervolume of ``front`` over that of ``best``.

    The reference point lies 10 % beyond the worst values of both fronts. Each objective is scaled by its range over
    both fronts, so that units do not matter.
    """
    sides = [np.stack([f.cost, -f.accuracy], axis=1) for f in (front, best)]
    together = np.concatenate(sides)
    low, span = together.min(axis=0), np.ptp(together, axis=0)
    span[span == 0] = 1.0
    indicator = HV(ref_point=np.array([1.1, 1.1]))
    of_front, of_best = (float(indicator((side - low) / span)) for side in sides)
    return of_front / of_best
