"""SubNets in the order of their tree, and in groups of about equal work.

A group is computed as a whole: all its SubNets on one batch, then on the next. Groups share nothing, so that a division
between two SubNets costs the work that both have in common. An interrupted run loses at most one group of each worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from autotailor.accuracy.sharing.tree import Branch

LARGEST = 32
"""SubNets in a group, about."""


def groups(tree: Branch, workers: int) -> tuple[tuple[int, ...], ...]:
    """Divides SubNets into groups, the same number of them for each worker, so that the largest is as small as can be.

    Args:
        tree: of the SubNets.
        workers: that compute groups side by side.

    Returns:
        Positions of the SubNets in the list that the tree was grown from, group by group.
    """
    order, alone, more = _costs(tree)
    count = min(len(order), workers * -(-len(order) // (LARGEST * workers)))
    low, high = max(alone) / count, sum(alone)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if len(_filled(alone, more, middle)) <= count else (middle, high)
    starts = [*_filled(alone, more, high), len(order)]
    return tuple(tuple(order[i:j]) for i, j in pairwise(starts))


def _costs(tree: Branch) -> tuple[list[int], list[float], list[float]]:
    """SubNets in the order of the leaves; the work of each alone, and behind the SubNet before it."""
    order: list[int] = []
    alone: list[float] = []
    more: list[float] = []

    def walk(branch: Branch, shared: float) -> None:
        if not branch.children:
            order.extend(branch.subnets)
            alone.extend(branch.work for _ in branch.subnets)
            more.extend([branch.work - shared, *(0.0 for _ in branch.subnets[1:])])
        for number, child in enumerate(branch.children):
            walk(child, branch.work if number else shared)

    walk(tree, 0.0)
    return order, alone, more


def _filled(alone: Sequence[float], more: Sequence[float], limit: float) -> list[int]:
    """First members of groups that each take as many SubNets as cost no more than a limit, and at least one."""
    starts: list[int] = []
    cost = 0.0
    for i, (single, added) in enumerate(zip(alone, more, strict=True)):
        if not starts or cost + added > limit:
            starts.append(i)
            cost = single
        else:
            cost += added
    return starts
