"""Candidates for a budget: SubNets with good predictions that differ from each other.

The predictor sums the accuracy drops of single modifications. It is least accurate for SubNets that combine many cheap
modifications, and a search finds exactly such SubNets. Therefore some candidates are measured on the validation set
before a budget's SubNet is exported, and the most accurate candidate is exported.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autotailor.ir.dimensions.dimension import EXPAND_RATIO, HEADS, RESOLUTION, V_SCALE, WIDTH
from autotailor.ir.space.metric import Metric
from autotailor.ir.space.subnet import IntArray, SubNet, canonical, largest, smallest, stack
from autotailor.ir.space.variable import Modification, Space
from autotailor.search.budgets import predicted_limit
from autotailor.search.front import Front, Objectives, non_dominated
from autotailor.search.joint.limits import NONE, Limits
from autotailor.search.robust.forecast import LatencyForecast, Timing

log = logging.getLogger(__name__)

DRAWS = 40_000
CLOSE = 0.8  # candidates use at least this share of the budget, or of the largest SubNet's cost if the budget is above
NARROWED = (WIDTH, EXPAND_RATIO, HEADS, V_SCALE)
"""Kinds of variables that set how many channels there are."""
APART = (0.3, 0.15, 0.0)
"""Candidates differ from each other in at least the first share of the variables; where too few do, in the next one."""


def candidates(
    objectives: Objectives,
    front: Front,
    budget: float,
    count: int,
    seed: int,
    limits: Limits = NONE,
    best: SubNet | None = None,
) -> list[SubNet]:
    """At most ``count`` SubNets within a budget: the front's, the smallest, then others by predicted accuracy.

    The smallest SubNet has all modifications and the lowest prediction. It is a candidate nevertheless, because
    training strategies favour it.

    Args:
        objectives: predicted accuracy and cost.
        front: of the search.
        budget: largest cost, in its unit.
        count: largest number of candidates. Each of the others differs from all candidates before it, see ``APART``.
        seed: of the draws.
        limits: of further metrics, which every candidate keeps. What leaves much of the budget is a candidate as well,
            since another limit may be the tight one.
        best: the most accurate SubNet within the budget and the limits; None takes that of the front.
    """
    best = best or front.at(budget)
    pool = _draw(objectives.space, best, np.random.default_rng(seed))
    cost = objectives.cost.predict(pool)
    whole = float(objectives.cost.predict(largest(objectives.space).to_array())[0])
    close = 0.0 if limits else CLOSE * min(budget, whole)
    pool = pool[(cost <= budget) & (cost >= close) & limits.keep(pool)]
    ranked = pool[np.argsort(-objectives.accuracy.predict(pool), kind="stable")]
    chosen = [best.to_array()]
    least = smallest(objectives.space)
    fits = objectives.cost.predict(least.to_array())[0] <= budget and limits.allow(least)
    if count > 1 and least != best and fits:
        chosen.append(least.to_array())
    chosen += _different(ranked, chosen, count - len(chosen))
    return [SubNet.from_array(objectives.space, row) for row in chosen]


def trivial(space: Space) -> list[SubNet]:
    """What a person tries before any search: the original network at each resolution, and one width for all layers.

    Of the latter there is one for each step: all variables of ``NARROWED`` stand so many choices below the original.
    """
    whole = largest(space)
    subnets = [whole]
    if RESOLUTION in space.positions:
        subnets += [whole.transform(Modification(RESOLUTION, choice)) for choice in space[RESOLUTION].choices]
    channels = [variable for variable in space if variable.kind in NARROWED and variable.is_ordered]
    for step in range(1, 1 + max((each.default - each.least for each in channels), default=0)):
        rungs = {each.name: each.choices[max(each.least, each.default - step)] for each in channels}
        subnets.append(SubNet.from_assignment(space, {**whole.assignment, **rungs}))
    return list(dict.fromkeys(subnets))


def undominated(cost: Metric, subnets: Sequence[SubNet], accuracy: npt.ArrayLike) -> list[SubNet]:
    """The SubNets of which no other one is as accurate and costs as little, the cheapest first.

    Args:
        cost: predicts costs.
        subnets: that are compared.
        accuracy: of each SubNet ``[n]``, percent.
    """
    if not subnets:
        return []
    return [subnets[row] for row in non_dominated(cost.predict(stack(subnets)), np.asarray(accuracy))]


def _different(ranked: IntArray, chosen: Sequence[IntArray], count: int) -> list[IntArray]:
    """At most ``count`` rows, the first ones first, that differ from ``chosen`` and from each other, see ``APART``."""
    rows: list[IntArray] = []
    differing = np.min([(ranked != other).mean(axis=1) for other in chosen], axis=0)
    for apart in APART:
        while len(rows) < count and (places := np.flatnonzero((differing > 0) & (differing >= apart))).size:
            rows.append(ranked[places[0]])
            differing = np.minimum(differing, (ranked != rows[-1]).mean(axis=1))
    return rows


@dataclass(frozen=True, eq=False)
class Asked:
    """What a budget asks of its SubNet.

    Attributes:
        name: of the budget.
        budget: of what is measured, in the unit of the cost.
        forecast: of measured costs.
        limits: of further metrics, see ``candidates``.
        best: see ``candidates``; where none is sure to meet the budget, this one takes the place of the cheapest.
    """

    name: str
    budget: float
    forecast: LatencyForecast
    limits: Limits = NONE
    best: SubNet | None = None

    def is_met(self, subnet: SubNet, predicted: float, timings: Iterable[Timing] = ()) -> bool:
        """Whether a SubNet meets the budget with the forecast's confidence, and keeps the limits.

        Args:
            subnet: the SubNet.
            predicted: its predicted cost.
            timings: what sessions have measured of it.
        """
        if not self.limits.allow(subnet):
            return False
        return self.forecast.is_met(self.forecast.after(subnet, predicted, timings), self.budget)


def surest(front: Front, limit: float, target: Asked) -> SubNet | None:
    """The most accurate SubNet of a front at a predicted cost of at most ``limit`` that meets a budget; None: none."""
    for row in range(int(np.searchsorted(front.cost, limit, side="right")) - 1, -1, -1):
        subnet = SubNet.from_array(front.space, front.indices[row])
        if target.is_met(subnet, float(front.cost[row])):
            return subnet
    return None


def safe_candidates(objectives: Objectives, front: Front, target: Asked, count: int, seed: int) -> list[SubNet]:
    """Candidates that meet a budget with the forecast's confidence when they are measured.

    Of the candidates within the predicted cost that meets the budget, those whose own standard errors in the LUT are
    too large for the confidence are left out. If none is left, the most accurate SubNet of the front that meets the
    budget is the only candidate. If there is none either, it is the cheapest, and a warning says how likely it meets
    the budget.

    Args:
        objectives: predicted accuracy and cost.
        front: of the search.
        target: what the budget asks.
        count: see ``candidates``.
        seed: see ``candidates``.

    Raises:
        SearchError: the cheapest SubNet is above the budget, see ``predicted_limit``.
    """

    def predicted(subnet: SubNet) -> float:
        return float(objectives.cost.predict(subnet.to_array())[0])

    limit = predicted_limit(front, target.budget, target.name, target.forecast)
    drawn = candidates(objectives, front, limit, count, seed, target.limits, target.best)
    if safe := [subnet for subnet in drawn if target.is_met(subnet, predicted(subnet))]:
        return safe
    if sure := surest(front, limit, target):
        return [sure]
    cheapest = target.best or SubNet.from_array(front.space, front.indices[0])
    log.warning(
        "%s: no SubNet is sure to meet %.4g %s; the smallest cost meets it with a probability of %.1f %%, and %.4g %% "
        "are asked for (search.confidence): raise the budget, or ask for less",
        target.name,
        target.budget,
        objectives.kind.unit,
        target.forecast.of(cheapest, predicted(cheapest)).percent(target.budget),
        100 * target.forecast.confidence,
    )
    return [cheapest]


def _draw(space: Space, best: SubNet, random: np.random.Generator) -> IntArray:
    """Distinct SubNets: half modify the largest, half the best SubNet, each in a random share of the variables."""
    choices = np.array([len(v.choices) for v in space])
    origin = np.where(
        (np.arange(DRAWS) % 2 == 0)[:, None], largest(space).to_array()[None, :], best.to_array()[None, :]
    )
    kept = random.random((DRAWS, len(space))) < random.random((DRAWS, 1))
    drawn = np.where(kept, origin, random.integers(0, choices, (DRAWS, len(space))))
    return np.unique(canonical(space, drawn), axis=0)
