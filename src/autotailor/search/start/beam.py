"""Beam search from the largest SubNet downwards: the start of the genetic search (paper, section 4.3.2)."""

from __future__ import annotations

import numpy as np

from autotailor.ir.space.subnet import IntArray, canonical, largest
from autotailor.ir.space.variable import Space
from autotailor.search.front import Objectives


def distinct(indices: IntArray) -> IntArray:
    """Distinct rows of choice indices ``[n, variables]`` in rising order, as ``np.unique(axis=0)`` has them.

    Rows are compared as bytes, which is several times faster than number by number. Two bytes for each index, the
    higher one first, keep the order.
    """
    packed = np.ascontiguousarray(indices.astype(">u2"))
    keys = packed.view(np.dtype((np.void, packed.shape[1] * packed.itemsize))).ravel()
    return indices[np.unique(keys, return_index=True)[1]]


def neighbours(space: Space, indices: IntArray) -> IntArray:
    """All distinct SubNets one modification away from ``indices`` ``[n, variables]``: ``[m, variables]``."""
    rows = []
    for column, variable in enumerate(space):
        for choice in range(len(variable.choices)):
            changed = indices.copy()
            changed[:, column] = choice
            rows.append(changed)
    return distinct(canonical(space, np.concatenate(rows)))


def beam_search(objectives: Objectives, width: int) -> IntArray:
    """Shrinks the largest SubNet by one modification at a time.

    Each step tries all single modifications of the beam's SubNets that lower the cost, and keeps the ``width`` results
    that lose the least accuracy for the cost saved, both relative to the largest SubNet. Terms are additive, so
    that the price of a modification can be judged in a partly modified network. The search ends where no modification
    lowers the cost.

    Returns:
        All SubNets of all beams, distinct: ``[n, variables]``.
    """
    space = objectives.space
    start = largest(space).to_array()[None]
    start_cost, start_accuracy = (
        objectives.cost.predict(start)[0],
        objectives.accuracy.linear(start)[0],
    )
    beam, visited, ceiling = start, [start], start_cost
    for _ in range(sum(len(v.choices) - 1 for v in space)):
        candidates = neighbours(space, beam)
        cost = objectives.cost.predict(candidates)
        cheaper = cost < ceiling
        if not cheaper.any():
            break
        candidates, cost = candidates[cheaper], cost[cheaper]
        price = (start_accuracy - objectives.accuracy.linear(candidates)) / (start_cost - cost)
        kept = np.argsort(price, kind="stable")[:width]
        beam = candidates[kept]
        ceiling = cost[kept].max()
        visited.append(beam)
    return distinct(np.concatenate(visited))


def best_at_budgets(objectives: Objectives, indices: IntArray, budgets: int) -> IntArray:
    """The most accurate of ``indices`` ``[n, variables]`` at each of ``budgets`` budgets, spread evenly."""
    cost, accuracy = objectives.cost.predict(indices), objectives.accuracy.predict(indices)
    order = np.lexsort((-accuracy, cost))
    best = np.maximum.accumulate(accuracy[order])
    first = np.searchsorted(best, best)  # the first row that reached this accuracy
    limits = np.linspace(cost.min(), cost.max(), budgets)
    limits[-1] = cost.max()
    rows = first[np.searchsorted(cost[order], limits, side="right") - 1]
    return indices[order[np.unique(rows)]]
