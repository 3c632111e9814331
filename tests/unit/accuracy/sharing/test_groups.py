"""How SubNets are divided into groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotailor.accuracy.sharing.groups import LARGEST, groups
from autotailor.accuracy.sharing.tree import Branch, grow
from prefix_trees import chain


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), min_size=1, max_size=80), st.integers(1, 4))
def test_groups_are_the_leaves_in_order_and_as_many_for_each_worker(keys: list[list[int]], workers: int) -> None:
    tree = grow([chain(own) for own in keys])
    found = groups(tree, workers)
    assert tuple(i for group in found for i in group) == tree.subnets
    assert all(found)
    assert len(found) <= min(len(keys), workers * -(-len(keys) // (LARGEST * workers)))


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=2, max_size=7), st.integers(2, 3))
def test_no_other_division_has_a_smaller_largest_group(keys: list[list[int]], workers: int) -> None:
    steps = [chain(own) for own in keys]

    def largest(divided: Iterable[Sequence[int]]) -> float:
        return max(_work(grow([steps[i] for i in group])) for group in divided)

    tree = grow(steps)
    order, count = tree.subnets, min(workers, len(keys))
    ends = combinations(range(1, len(order)), count - 1)
    divisions = ([order[i:j] for i, j in pairwise((0, *cut, len(order)))] for cut in ends)
    assert largest(groups(tree, workers)) == min(map(largest, divisions))


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_workers_get_about_equal_work(workers: int) -> None:
    random = np.random.default_rng(0)
    steps = [chain(random.integers(0, 2, 12).tolist()) for _ in range(60)]
    found = groups(grow(steps), workers)
    work = [_work(grow([steps[i] for i in group])) for group in found]
    assert len(found) == max(2, workers)
    assert max(work) < 1.3 * min(work)


def _work(branch: Branch, before: float = 0.0) -> float:
    return branch.work - before + sum(_work(child, branch.work) for child in branch.children)
