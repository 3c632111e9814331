"""Random search and regularised evolution: SubNets ``[evaluations, variables]`` in the order of their evaluation."""

from __future__ import annotations

from collections import deque

import numpy as np

from autotailor.ir.space.subnet import IntArray, canonical, largest, sample, smallest, stack
from autotailor.search import Objectives

MEMBERS, TOURNAMENT = 100, 25
"""Size of the population and of its samples (Real et al., 2019)."""


def random_search(objectives: Objectives, evaluations: int, seed: int) -> IntArray:
    """Distinct SubNets, drawn uniformly."""
    rng, rows = np.random.default_rng(seed), {}
    while len(rows) < evaluations:
        row = sample(objectives.space, rng).to_array()
        rows.setdefault(row.tobytes(), row)
    return np.stack(list(rows.values()))


def regularised_evolution(objectives: Objectives, evaluations: int, seed: int) -> IntArray:
    """Aging evolution (Real et al., 2019) for a whole front.

    In each step a sample of the population competes, the winner's copy gets another choice of one variable, and the
    oldest member dies. The method has one objective. For a front, each tournament draws a budget from the range of the
    costs; its winner is the most accurate member within the budget, or the cheapest where none is within.
    """
    space, rng = objectives.space, np.random.default_rng(seed)
    rows = list(random_search(objectives, MEMBERS, seed))
    costs, accuracies = (list(m.predict(np.stack(rows))) for m in (objectives.cost, objectives.accuracy))
    low, high = objectives.cost.predict(stack([smallest(space), largest(space)]))
    alive, seen = deque(range(MEMBERS)), {row.tobytes() for row in rows}
    while len(rows) < evaluations:
        budget = rng.uniform(low, high)
        sampled = rng.choice(MEMBERS, TOURNAMENT, replace=False)
        members = [alive[number] for number in sampled]
        within = [member for member in members if costs[member] <= budget]
        winner = max(within, key=accuracies.__getitem__) if within else min(members, key=costs.__getitem__)
        child = rows[winner].copy()
        column = rng.integers(len(space))
        child[column] = rng.integers(len(space.variables[column].choices))
        (child,) = canonical(space, child[None])
        if child.tobytes() in seen:
            continue
        seen.add(child.tobytes())
        rows.append(child)
        costs.append(objectives.cost.predict(child)[0])
        accuracies.append(objectives.accuracy.predict(child)[0])
        alive.append(len(rows) - 1)
        alive.popleft()
    return np.stack(rows)
