"""The plan of what is kept, against all plans of small trees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotailor.accuracy.sharing.plan import UNITS, plan
from autotailor.accuracy.sharing.tree import Branch, Cut, grow
from prefix_trees import chain, least_cost, least_of_all_orders, paths, replayed, trees

MEMORIES = st.sampled_from([0, 1, 2, 4, 8, UNITS])


def edges(branch: Branch, before: float = 0.0) -> float:
    """Work of all branches, each once."""
    return branch.work - before + sum(edges(child, branch.work) for child in branch.children)


@settings(max_examples=300, deadline=None)
@given(trees(), MEMORIES)
def test_no_choice_of_cuts_and_children_repeats_less_work(tree: Branch, memory: int) -> None:
    cost, most = replayed(tree, plan(tree, memory, images=1))
    assert most <= memory
    assert cost == edges(tree) + least_cost(tree, memory)


@settings(max_examples=60, deadline=None)
@given(trees(), st.sampled_from([0, 4, UNITS]))
def test_no_order_of_runs_is_better_where_memory_is_ample_or_none(tree: Branch, memory: int) -> None:
    cost, _ = replayed(tree, plan(tree, memory, images=1))
    least = least_of_all_orders(tree, memory)
    assert cost == least if memory != 4 else cost >= least


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), min_size=1, max_size=12), MEMORIES)
def test_every_subnet_is_visited_once_within_the_limit(keys: list[list[int]], memory: int) -> None:
    steps = [chain(own) for own in keys]
    tree = grow(steps)
    visits = plan(tree, 7 * memory, images=7)
    assert sorted(i for visit in visits for i in visit.subnets) == list(range(len(keys)))
    cost, most = replayed(tree, visits)
    assert most <= memory
    assert edges(tree) <= cost <= sum(leaf.work for leaf, _ in paths(tree))


def test_without_memory_every_subnet_runs_whole() -> None:
    tree = grow([chain([0, 1, 2]), chain([0, 1, 3]), chain([0, 4, 5])])
    visits = plan(tree, 0, images=1)
    assert [(visit.start, visit.keeps) for visit in visits] == [(0, [])] * 3


def test_the_last_child_takes_the_kept_tensors_over() -> None:
    """A trunk from which single SubNets part needs the memory of one cut only, whatever its length."""
    tree = grow([chain([0] * i + [1] * (20 - i)) for i in range(1, 21)])
    cost, most = replayed(tree, plan(tree, 3, images=1))
    assert cost == edges(tree)
    assert most <= 3


@pytest.mark.parametrize(("memory", "kept"), [(5, {2}), (4, {1}), (0, set())])
def test_a_cut_that_does_not_fit_is_replaced_by_an_earlier_one(memory: int, kept: set[int]) -> None:
    cuts = (Cut(1, 4.0, 3), Cut(2, 9.0, 5))
    tree = Branch((0, 1), 10.0, cuts, (Branch((0,), 12.0), Branch((1,), 12.0)))
    visits = plan(tree, memory, images=1)
    assert {cut.position for visit in visits for cut in visit.keeps} == kept
    assert replayed(tree, visits)[0] == 24 - max([0.0, *(cut.work for cut in cuts if cut.position in kept)])


def test_a_plan_for_many_subnets_takes_little_time() -> None:
    random = np.random.default_rng(0)
    tree = grow([chain(random.integers(0, 2, 40).tolist()) for _ in range(64)])
    assert len(plan(tree, 10, images=1)) == 64


@pytest.mark.parametrize(
    ("early_cut", "repeated", "starts"), [(8.0, 6.0, [0, 3, 1, 3, 1, 1]), (2.0, 10.0, [0, 3, 0, 2, 2, 3])]
)
def test_children_that_need_the_memory_run_before_and_behind_the_others(
    early_cut: float, repeated: float, starts: list[int]
) -> None:
    """Two children need half of the memory for a cut of their own.

    The later cut of the branch takes all of the memory: one of the two children runs before it is kept, and the other
    takes it over, which repeats the way to the cut once. The earlier cut leaves room for both, and each of the three
    starts repeats the way from it.
    """

    def needy(first: int) -> Branch:
        leaves = (Branch((first,), 111.0), Branch((first + 1,), 111.0))
        return Branch((first, first + 1), 110.0, (Cut(3, 110.0, 2),), leaves)

    children = (needy(0), needy(2), Branch((4,), 11.0), Branch((5,), 11.0))
    tree = Branch(tuple(range(6)), 10.0, (Cut(1, early_cut, 2), Cut(2, 10.0, 4)), children)
    visits = plan(tree, 4, images=1)
    assert [visit.start for visit in visits] == starts
    assert replayed(tree, visits) == (edges(tree) + repeated, 4)
    assert least_cost(tree, 4) == repeated
