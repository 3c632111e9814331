"""Candidates for a budget: predicted to be good, and different from each other.

The predictor adds up what single modifications cost; SubNets that combine many cheap ones are where it is most wrong,
and a search finds exactly those. So before a budget's SubNet is exported, some candidates are measured on the
validation set, and the best of them is taken.
"""

from __future__ import annotations

import numpy as np

from autotailor.ir.space.subnet import IntArray, SubNet, canonical, largest, smallest
from autotailor.ir.space.variable import Space
from autotailor.search.front import Front, Objectives

DRAWS = 40_000
CLOSE = 0.8  # candidates use at least this share of the budget
APART = 0.3  # and differ from each other in at least this share of the variables


def candidates(objectives: Objectives, front: Front, budget_ms: float, count: int, seed: int) -> list[SubNet]:
    """At most ``count`` SubNets within a budget: the front's own, the smallest, then others by predicted accuracy.

    The smallest is predicted worst of all, having every modification; yet training strategies favour it.

    Args:
        objectives: what is predicted.
        front: of the search.
        budget_ms: largest latency.
        count: how many; each of the others differs from those before it in at least ``APART`` of the variables.
        seed: of the draws.
    """
    best = front.at(budget_ms, "budget")
    pool = _draw(objectives.space, best, np.random.default_rng(seed))
    latency = objectives.latency.predict(pool)
    pool = pool[(latency <= budget_ms) & (latency >= CLOSE * budget_ms)]
    ranked = pool[np.argsort(-objectives.accuracy.predict(pool), kind="stable")]
    chosen = [best.to_array()]
    least = smallest(objectives.space)
    if count > 1 and least != best and objectives.latency.predict(least.to_array())[0] <= budget_ms:
        chosen.append(least.to_array())
    for row in ranked:
        if len(chosen) >= count:
            break
        if min((row != other).mean() for other in chosen) >= APART:
            chosen.append(row)
    return [SubNet.from_array(objectives.space, row) for row in chosen]


def _draw(space: Space, best: SubNet, random: np.random.Generator) -> IntArray:
    """Distinct SubNets: half drawn freely, half mutations of the best; each keeps a random share of its origin."""
    choices = np.array([len(v.choices) for v in space])
    origin = np.where(
        (np.arange(DRAWS) % 2 == 0)[:, None], largest(space).to_array()[None, :], best.to_array()[None, :]
    )
    kept = random.random((DRAWS, len(space))) < random.random((DRAWS, 1))
    drawn = np.where(kept, origin, random.integers(0, choices, (DRAWS, len(space))))
    return np.unique(canonical(space, drawn), axis=0)
