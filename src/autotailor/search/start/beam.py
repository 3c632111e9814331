"""Beam search from the largest SubNet downwards: the start of the genetic search (paper, section 4.3.2).

Beside it stand *descents*: SubNets that no other choice of a single variable improves, for many weights of the two
objectives. The SubNet with the least weighted sum of cost and negated accuracy lies on the front, whatever the weights
are. A *descent* goes from the largest SubNet to one with a small weighted sum: one variable after the other takes the
choice that makes the sum least, until no variable changes. All weights descend together, and after each round a weight
that is better served by the SubNet of another weight goes on from there.

What descents find is no more than a local optimum where terms couple variables. The genetic search begins with it.
"""

import numpy as np

from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import IntArray, canonical, largest, smallest, stack
from autotailor.ir.space.variable import Space
from autotailor.search.front import Objectives

ROUNDS = 12
"""Rounds over all variables at most. The paper's spaces need four to six."""


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


def descents(objectives: Objectives, count: int) -> IntArray:
    """Local optima of ``count`` weighted sums of cost and accuracy, distinct: ``[k, variables]``, k <= count.

    Each objective counts in units of what the largest and the smallest SubNet are apart in it, and the angles of the
    weights are spread evenly. Accuracy is taken before the metric's link.
    """
    space = objectives.space
    weights = _weights(objectives, count)
    found = np.repeat(largest(space).to_array()[None], count, axis=0)
    for _ in range(ROUNDS):
        before = found
        for column, variable in enumerate(space):
            if len(variable.choices) > 1:
                found = _with_best_choice(objectives, weights, found, column)
        values = _values(objectives, found)
        found = found[np.argmin(weights @ values.T, axis=1)]
        if np.array_equal(found, before):
            break
    return distinct(found)


def _weights(objectives: Objectives, count: int) -> FloatArray:
    """Weights of cost and negated accuracy ``[count, 2]``."""
    ends = _values(objectives, stack([smallest(objectives.space), largest(objectives.space)]))
    spans = np.abs(ends[1] - ends[0])
    angles = np.linspace(0.0, np.pi / 2, count + 2)[1:-1]
    return np.stack([np.cos(angles), np.sin(angles)], axis=1) / np.where(spans > 0, spans, 1.0)


def _values(objectives: Objectives, indices: IntArray) -> FloatArray:
    """Cost and negated accuracy, before their links, for ``indices`` ``[n, variables]``: ``[n, 2]``."""
    return np.stack([objectives.cost.linear(indices), -objectives.accuracy.linear(indices)], axis=1)


def _with_best_choice(objectives: Objectives, weights: FloatArray, found: IntArray, column: int) -> IntArray:
    """SubNets ``[count, variables]`` whose variable ``column`` has the choice with the least weighted sum."""
    choices = len(objectives.space.variables[column].choices)
    offered = np.repeat(found, choices, axis=0)
    offered[:, column] = np.tile(np.arange(choices), len(found))
    offered = canonical(objectives.space, offered)
    values = _values(objectives, offered).reshape(len(found), choices, 2)
    best = np.argmin(np.einsum("kco,ko->kc", values, weights), axis=1)
    return np.asarray(offered[np.arange(len(found)) * choices + best])
