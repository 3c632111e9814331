"""Partial fronts: non-dominated assignments of the variables that were eliminated so far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.metric import FloatArray
from autotailor.search.front import non_dominated

ChoiceArray = npt.NDArray[np.int16]

_LARGEST_PRODUCT = 4_000_000


@dataclass(frozen=True, eq=False)
class Partial:
    """Partial assignments that no other one dominates, by rising cost and falling loss.

    Attributes:
        cost: sum of the eliminated terms ``[k]``.
        loss: negated accuracy of the eliminated terms ``[k]``.
        choices: choice indices ``[k, variables]``, 0 for variables that are not decided yet.
        slack: upper bound of the cost that thinning has added so far.
    """

    cost: FloatArray
    loss: FloatArray
    choices: ChoiceArray
    slack: float = 0.0

    def __len__(self) -> int:
        return len(self.cost)

    def extended(self, variable: int, choice: int, cost: float, loss: float) -> Partial:
        """The same assignments with one more variable decided, whose choice adds cost and loss."""
        choices = self.choices.copy()
        choices[:, variable] = choice
        return Partial(self.cost + cost, self.loss + loss, choices, self.slack)


def nothing(variables: int) -> Partial:
    """The neutral element of ``product``: no variable is decided, cost and loss are 0."""
    return Partial(np.zeros(1), np.zeros(1), np.zeros((1, variables), dtype=np.int16))


def union(parts: list[Partial], variables: int, max_points: int) -> Partial:
    """The front of the points of several partial fronts over the same variables; empty without partial fronts."""
    if not parts:
        empty = np.empty(0)
        return Partial(empty, empty, np.empty((0, variables), dtype=np.int16))
    cost = np.concatenate([p.cost for p in parts])
    loss = np.concatenate([p.loss for p in parts])
    rows = non_dominated(cost, -loss)
    choices = np.concatenate([p.choices for p in parts])[rows]
    return thinned(Partial(cost[rows], loss[rows], choices, max(p.slack for p in parts)), max_points)


def product(a: Partial, b: Partial, max_points: int) -> Partial:
    """The front of all sums of a point of ``a`` and a point of ``b``, whose variables are disjoint."""
    while len(a) * len(b) > _LARGEST_PRODUCT:
        a, b = (thinned(a, len(a) // 2), b) if len(a) > len(b) else (a, thinned(b, len(b) // 2))
    cost = np.add.outer(a.cost, b.cost).ravel()
    loss = np.add.outer(a.loss, b.loss).ravel()
    rows = non_dominated(cost, -loss)
    choices = a.choices[rows // max(len(b), 1)] + b.choices[rows % max(len(b), 1)]
    return thinned(Partial(cost[rows], loss[rows], choices, a.slack + b.slack), max_points)


def thinned(part: Partial, max_points: int) -> Partial:
    """Keeps at most ``max_points + 1`` points: the one with the least loss of each bin of cost, and the cheapest.

    For every dropped point, a point is kept that has no greater loss and costs at most one bin more.
    """
    if len(part) <= max_points:
        return part
    width = (part.cost[-1] - part.cost[0]) / max_points
    bins = np.minimum(((part.cost - part.cost[0]) / width).astype(np.int64), max_points - 1)
    last_of_bin = np.append(bins[1:] != bins[:-1], True)
    last_of_bin[0] = True
    return Partial(
        part.cost[last_of_bin],
        part.loss[last_of_bin],
        part.choices[last_of_bin],
        part.slack + float(width),
    )
