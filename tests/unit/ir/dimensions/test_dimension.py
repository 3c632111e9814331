"""Dimensions: sizes, index sets and unification."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotailor.ir.dimensions.dimension import Atom, Constant, Dimension, Product, Resolution, Sum, Window, product
from autotailor.ir.dimensions.unifier import Unifier

A, B, C = Atom("a", 8), Atom("b", 8), Atom("c", 4)


def sizes_of(**sizes: int):
    return lambda atom: sizes.get(atom.name, atom.meta)


def test_indices_after_concat_and_flatten_are_no_prefix() -> None:
    flat = Product((Sum((A, B)), Constant(3), Constant(3)))
    kept = flat.indices(sizes_of(a=4), {})
    channels = np.unique(kept // 9)
    assert flat.meta == 144
    assert list(channels) == [0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15]
    assert len(kept) == flat.size(sizes_of(a=4)) == 108


def test_order_permutes_the_channels_of_an_atom() -> None:
    order = np.array([3, 1, 0, 2])
    assert list(Sum((C, C)).indices(sizes_of(c=2), {C: order})) == [3, 1, 7, 5]


def expressions(depth: int = 2) -> st.SearchStrategy[Dimension]:
    leaves = st.sampled_from([A, B, C, Constant(2), Constant(3)])
    if depth == 0:
        return leaves
    parts = st.lists(expressions(depth - 1), min_size=2, max_size=3).map(tuple)
    return st.one_of(leaves, parts.map(Sum), parts.map(product)).filter(lambda d: d.meta <= 20_000)


def brute_force(dimension: Dimension, sizes) -> np.ndarray:
    """Marks every scalar by whether its atoms keep it, with NumPy's own concatenate and outer product."""
    if isinstance(dimension, Atom):
        return np.arange(dimension.meta) < sizes(dimension)
    if isinstance(dimension, Constant):
        return np.ones(dimension.meta, dtype=bool)
    parts = [brute_force(child, sizes) for child in dimension.children()]
    if isinstance(dimension, Sum):
        return np.concatenate(parts)
    marks = parts[0]
    for part in parts[1:]:
        marks = np.logical_and.outer(marks, part).ravel()
    return marks


@settings(deadline=None, max_examples=60)
@given(expressions(), st.integers(1, 8), st.integers(1, 8), st.integers(1, 4))
def test_indices_agree_with_brute_force(dimension: Dimension, a: int, b: int, c: int) -> None:
    sizes = sizes_of(a=a, b=b, c=c)
    marks = brute_force(dimension, sizes)
    assert len(marks) == dimension.meta
    assert np.array_equal(dimension.indices(sizes, {}), np.flatnonzero(marks))
    assert dimension.size(sizes) == marks.sum()


def test_unify_binds_an_atom_to_a_product() -> None:
    unifier, groups = Unifier(), Atom("groups", 2)
    unifier.unify(A, Product((groups, Constant(4))))
    assert unifier.resolve(Sum((A, B))) == Sum((Product((groups, Constant(4))), B))


def test_unify_of_what_cannot_agree_is_static() -> None:
    unifier = Unifier()
    unifier.unify(Sum((A, C)), Product((C, Constant(3))))
    assert unifier.resolve(A) == Constant(8)
    assert unifier.resolve(C) == Constant(4)


def test_windows_that_always_agree_stay_elastic() -> None:
    unifier, side = Unifier(), Resolution("resolution", 33)
    padded = Window(side, shrink=3 - 2, stride=2)
    twice = Window(Window(side, shrink=1, stride=1), shrink=1, stride=2)
    unifier.unify(padded, twice)
    assert unifier.resolve(side) == side
    unifier.unify(padded, Window(side, shrink=2, stride=2))
    assert unifier.resolve(side) == Constant(33)


@pytest.mark.parametrize("ceil", [False, True])
def test_windows_take_arrays_of_sizes(ceil: bool) -> None:
    window = Window(Resolution("resolution", 33), 2, 3, ceil, begin=1)
    sizes = np.arange(4, 34)
    expected = [window.size(lambda _, n=n: n) for n in sizes.tolist()]
    assert window.size(lambda _: sizes).tolist() == expected  # type: ignore[arg-type, return-value, attr-defined]
