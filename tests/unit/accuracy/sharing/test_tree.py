"""The tree of shared prefixes."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from autotailor.accuracy.sharing.tree import Branch, grow
from prefix_trees import chain, paths

KEYS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), min_size=1, max_size=12)


def common(a: list[int], b: list[int]) -> int:
    """Length of the prefix that two lists have in common."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


@given(KEYS)
def test_every_subnet_is_in_one_leaf_with_those_that_are_like_it(keys: list[list[int]]) -> None:
    leaves = [leaf for leaf, _ in paths(grow([chain(own) for own in keys]))]
    assert sorted(i for leaf in leaves for i in leaf.subnets) == list(range(len(keys)))
    for leaf in leaves:
        assert all(keys[i] == keys[leaf.subnets[0]] for i in leaf.subnets)
        assert all(leaf.work == chain(keys[i]).work[-1] for i in leaf.subnets)
    assert len({tuple(keys[leaf.subnets[0]]) for leaf in leaves}) == len(leaves)


@given(KEYS)
def test_a_branch_ends_where_its_subnets_part(keys: list[list[int]]) -> None:
    steps = [chain(own) for own in keys]

    def check(branch: Branch) -> None:
        if branch.children:
            first, *others = branch.subnets
            end = min(common(keys[first], keys[i]) for i in others)
            assert branch.work == steps[first].work[end]
            assert branch.subnets == tuple(i for child in branch.children for i in child.subnets)
            assert len(branch.children) > 1
            assert all(cut.position <= end and cut.work == steps[first].work[cut.position] for cut in branch.cuts)
        for child in branch.children:
            check(child)

    check(grow(steps))


def test_a_cut_is_left_out_where_a_later_one_needs_no_more() -> None:
    """The tensors behind the steps have 2, 3, 1, 2, 3, 1 and 2 bytes."""
    tree = grow([chain([0, 0, 0, 0, 0, 0, 1]), chain([0, 0, 0, 0, 0, 0, 2])])
    assert [(cut.position, cut.size) for cut in tree.cuts] == [(6, 1)]
    tree = grow([chain([0, 0, 0, 0, 0, 1]), chain([0, 0, 0, 0, 0, 2])])
    assert [(cut.position, cut.size) for cut in tree.cuts] == [(3, 1), (4, 2), (5, 3)]


def test_a_cut_has_the_tensors_of_all_subnets_behind_it() -> None:
    """The second SubNet reads the first tensor late, as a skip over a block does that the first SubNet lacks."""
    one = chain([0, 0, 1])
    other = replace(chain([0, 0, 2]), live=(("t0",), ("t1",), ("t1", "t2"), ("t3",)))
    (cut,) = (cut for cut in grow([one, other]).cuts if cut.position == 2)
    assert set(cut.names) == {"t1", "t2"}
    assert cut.size == one.sizes["t1"] + one.sizes["t2"]


def test_one_subnet_is_a_leaf() -> None:
    assert grow([chain([0, 1])]) == Branch((0,), 3.0)


def test_subnets_of_different_resolutions_share_nothing() -> None:
    tree = grow([chain([0, 1], 8), chain([0, 2], 6), chain([0, 3], 8)])
    assert tree.work == 0
    assert [child.subnets for child in tree.children] == [(0, 2), (1,)]
