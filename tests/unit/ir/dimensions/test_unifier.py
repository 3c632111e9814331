"""Taking expressions apart: whatever sizes the atoms take, a reshape or split of the kept entries is what remains."""

import math
import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from autotailor.ir.dimensions.dimension import (
    Atom,
    Batch,
    Constant,
    Dimension,
    Product,
    Resolution,
    Sum,
    Window,
    product,
    total,
)
from autotailor.ir.dimensions.unifier import Unifier


def sizes_of(seed: int):  # type: ignore[no-untyped-def]
    """A random size for each atom, the same one every time it is asked."""
    known: dict[Atom, int] = {}

    def size(atom: Atom) -> int:
        if isinstance(atom, Resolution):
            return atom.meta
        return known.setdefault(atom, random.Random(f"{seed} {atom.name}").randint(1, atom.meta))

    return size


def kept(axes: tuple[Dimension, ...], seed: int) -> np.ndarray:
    """Positions in the flattened meta tensor that stay, in order."""
    whole = np.arange(math.prod(axis.meta for axis in axes)).reshape([axis.meta for axis in axes])
    return whole[np.ix_(*(axis.indices(sizes_of(seed), {}) for axis in axes))].ravel()


@st.composite
def dimensions(draw: st.DrawFn, depth: int = 2) -> Dimension:
    """A random expression; atoms get distinct names."""
    kind = draw(st.sampled_from(["atom", "constant", "sum", "product"] if depth else ["atom", "constant"]))
    if kind == "atom":
        return Atom(f"a{draw(st.integers(0, 10**9))}", draw(st.sampled_from([2, 3, 4, 6, 8, 12])))
    if kind == "constant":
        return Constant(draw(st.integers(1, 4)))
    parts = tuple(draw(st.lists(dimensions(depth - 1), min_size=2, max_size=3)))
    return total(parts) if kind == "sum" else product(parts)


small = dimensions().filter(lambda dimension: dimension.meta <= 64)


@settings(deadline=None)
@given(st.lists(small, min_size=1, max_size=2), st.data(), st.integers(0, 999))
def test_a_reshape_keeps_what_the_axes_keep(axes: list[Dimension], data: st.DataObject, seed: int) -> None:
    unifier = Unifier()
    rest = math.prod(axis.meta for axis in axes)
    metas = []
    while rest > 1 and len(metas) < 4:
        metas.append(data.draw(st.sampled_from([d for d in range(1, rest + 1) if rest % d == 0])))
        rest //= metas[-1]
    metas.append(rest)
    regrouped = tuple(map(unifier.resolve, unifier.factor((Batch(), *axes), (1, *metas))))
    before = tuple(map(unifier.resolve, axes))
    assert isinstance(regrouped[0], Batch)
    assert [axis.meta for axis in regrouped[1:]] == metas
    assert kept(regrouped[1:], seed).tolist() == kept(before, seed).tolist()


@settings(deadline=None)
@given(small, st.data(), st.integers(0, 999))
def test_segments_keep_what_the_axis_keeps(axis: Dimension, data: st.DataObject, seed: int) -> None:
    unifier = Unifier()
    bounds = sorted(data.draw(st.lists(st.integers(0, axis.meta), max_size=3)))
    metas = np.diff([0, *bounds, axis.meta]).tolist()
    segments = tuple(map(unifier.resolve, unifier.cut(axis, metas)))
    assert [segment.meta for segment in segments] == metas
    pieces = [start + s.indices(sizes_of(seed), {}) for start, s in zip([0, *bounds], segments, strict=True)]
    assert np.concatenate(pieces).tolist() == kept((unifier.resolve(axis),), seed).tolist()


@settings(deadline=None)
@given(small, small, st.integers(0, 999))
def test_what_is_unified_keeps_the_same(left: Dimension, right: Dimension, seed: int) -> None:
    unifier, scale = Unifier(), math.lcm(left.meta, right.meta)
    left, right = product((left, Constant(scale // left.meta))), product((Constant(scale // right.meta), right))
    unifier.unify(left, right)
    assert kept((unifier.resolve(left),), seed).tolist() == kept((unifier.resolve(right),), seed).tolist()


def test_a_fused_projection_has_heads_and_two_kinds_of_channels() -> None:
    unifier, fused = Unifier(), Atom("project", 3 * 48)
    _, heads, channels = unifier.factor((Batch(), fused), (1, 3, 48))
    queries, keys, values = unifier.cut(channels, (8, 8, 32))
    unifier.unify(queries, keys)
    expected = Product((heads, Sum((unifier.resolve(keys), unifier.resolve(keys), values))))
    assert unifier.resolve(fused) == expected
    sizes = {heads: 2, unifier.resolve(keys): 8, values: 16}
    assert expected.size(lambda atom: sizes[atom]) == 2 * (8 + 8 + 16)


def test_a_grid_survives_flattening_and_its_token() -> None:
    unifier, side = Unifier(), Window(Resolution("resolution", 32), 8, 8)
    (tokens,) = unifier.factor((side, side), (16,))
    joined = total((Constant(1), tokens))
    assert unifier.cut(joined, (1, 16)) == (Constant(1), tokens)
    assert unifier.factor((Batch(), tokens), (1, 4, 4)) == (Batch(), side, side)


def test_windows_of_an_image_restrict_the_resolution() -> None:
    unifier, resolution = Unifier(), Resolution("resolution", 28)
    windows, side, _ = unifier.factor((resolution, Atom("c", 6)), (4, 7, 6))
    assert side == Constant(7)
    assert unifier.step(resolution) == 7
    assert [windows.size(lambda _, n=n: n) for n in (7, 14, 21, 28)] == [1, 2, 3, 4]
    unifier.unify(product((windows, side)), resolution)
    assert unifier.resolve(resolution) == resolution


def test_windows_that_leave_no_choice_make_the_resolution_static() -> None:
    unifier, resolution = Unifier(), Resolution("resolution", 14)
    assert unifier.factor((resolution, Atom("c", 6)), (2, 7, 6))[:2] == (Constant(2), Constant(7))
    assert unifier.resolve(resolution) == Constant(14)


def test_what_is_halved_and_doubled_agrees_for_even_sizes() -> None:
    unifier, resolution = Unifier(), Resolution("resolution", 32)
    halved = Window(resolution, 1, 2)
    unifier.unify(resolution, product((halved, Constant(2))))
    assert unifier.step(resolution) == 2
    assert unifier.resolve(resolution) == resolution
