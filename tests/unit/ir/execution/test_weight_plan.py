"""What a plan takes of a weight is the same in NumPy and in PyTorch, and is what index sets say."""

import math
from collections.abc import Mapping

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autotailor.ir.dimensions.dimension import Atom, Constant, Dimension, Kernel, Product, Resolution, Sum
from autotailor.ir.execution.weight_plan import (
    Mixture,
    Region,
    Runs,
    Selection,
    Stretch,
    in_region,
    plan_weight,
    region_of,
    take_array,
    take_tensor,
    union,
    view,
)
from regions import outside

A, B, K, R = Atom("a", 4), Atom("b", 4), Kernel("k", 5), Resolution("resolution", 6)
SIZES: Mapping[Atom, int] = {A: 2, B: 3, K: 3, R: 4}
AXES: tuple[Dimension, ...] = (A, Sum((A, B)), Product((A, Constant(3))), K, Constant(7))


def size(atom: Atom) -> int:
    return SIZES[atom]


def test_consecutive_entries_are_a_stretch_and_others_a_selection() -> None:
    kinds = [None if part is None else type(part) for part in plan_weight(AXES, size)]
    assert kinds == [Stretch, Selection, Stretch, Stretch, None]


def test_both_take_what_index_sets_say() -> None:
    weight = np.random.default_rng(0).normal(size=tuple(axis.meta for axis in AXES)).astype(np.float32)
    expected = weight[np.ix_(*(axis.indices(size, {}) for axis in AXES))]
    plan = plan_weight(AXES, size)
    np.testing.assert_array_equal(take_array(weight, plan), expected)
    np.testing.assert_array_equal(take_tensor(torch.from_numpy(weight), plan).numpy(), expected)


def test_axes_indexed_by_the_image_are_resampled_alike() -> None:
    axes = (Sum((Constant(1), R)), R, A)
    weight = np.random.default_rng(0).normal(size=tuple(axis.meta for axis in axes)).astype(np.float32)
    plan = plan_weight(axes, size)
    assert [type(part) for part in plan] == [Mixture, Mixture, Stretch]
    taken = take_array(weight, plan)
    assert taken.dtype == np.float32
    assert taken.shape == (5, 4, 2)
    np.testing.assert_allclose(take_tensor(torch.from_numpy(weight), plan).numpy(), taken, atol=1e-5)


def test_an_order_selects_the_first_channels_of_it() -> None:
    order = np.array([3, 1, 0, 2])
    (part,) = plan_weight((A,), size, {A: order})
    assert isinstance(part, Selection)
    assert part.indices.tolist() == [3, 1]


@pytest.mark.parametrize("axis", [A, Constant(3)], ids=["stretch", "whole"])
def test_what_is_taken_consecutively_is_a_view(axis: Dimension) -> None:
    weight = np.zeros((axis.meta, 2), dtype=np.float32)
    assert np.shares_memory(take_array(weight, plan_weight((axis, Constant(2)), size)), weight)


@pytest.mark.parametrize(
    ("axis", "kind"),
    [
        (Product((Constant(3), A)), Runs),  # the first two channels of q, k and v
        (Product((B, A)), Runs),  # the first two channels of the first three heads
        (Product((Constant(2), B, A)), Selection),
        (Sum((A, A)), Runs),
        (Sum((A, B)), Selection),
    ],
    ids=["qkv", "heads", "both", "equal parts", "other parts"],
)
def test_equal_stretches_at_equal_distances_are_runs(axis: Dimension, kind: type) -> None:
    weight = np.random.default_rng(0).normal(size=(2, axis.meta, 3)).astype(np.float32)
    plan = plan_weight((Constant(2), axis, Constant(3)), size)
    expected = weight[:, axis.indices(size, {})]
    assert type(plan[1]) is kind
    np.testing.assert_array_equal(take_array(weight, plan), expected)
    np.testing.assert_array_equal(take_tensor(torch.from_numpy(weight), plan).numpy(), expected)


@pytest.mark.parametrize("axes", [AXES, (Product((B, A)), Sum((Constant(1), R)), Sum((A, B)), K)], ids=["views", "all"])
def test_gradients_of_whole_weights_are_zero_where_nothing_was_taken(axes: tuple[Dimension, ...]) -> None:
    plan = plan_weight(axes, size)
    weight = torch.randn([axis.meta for axis in axes], requires_grad=True)
    taken = take_tensor(weight, plan)
    gradient = torch.randn_like(taken)
    (expected,) = torch.autograd.grad(taken, weight, gradient)
    torch.testing.assert_close(in_region(plan, gradient, (None,) * len(plan), weight.shape), expected)


PARTS = [
    (A, Stretch(0, 2)),
    (Constant(3), None),
    (Sum((A, B)), Stretch(0, 7)),  # two of the first four entries, and three of the last four
    (Product((Constant(3), A)), Runs(0, 2, 3, 4, 3)),
    (Sum((Constant(1), R)), None),  # interpolated: of every entry something is taken
]


@pytest.mark.parametrize(("axis", "expected"), PARTS, ids=["stretch", "whole", "selection", "runs", "resampling"])
def test_the_region_of_a_plan_holds_all_that_is_taken(axis: Dimension, expected: Stretch | Runs | None) -> None:
    plan = plan_weight((Constant(2), axis), size)
    assert region_of(plan) == (None, expected)
    shape = (2, axis.meta)
    gradient = torch.randn_like(take_tensor(torch.zeros(shape), plan))
    whole = in_region(plan, gradient, (None, None), shape)
    inside = in_region(plan, gradient, region_of(plan), shape)
    assert torch.equal(take_tensor(whole, region_of(plan)), inside)
    assert not outside(whole, region_of(plan)).any()
    assert (inside is gradient) == isinstance(expected, type(plan[1]))


@st.composite
def axis_parts(draw: st.DrawFn, length: int) -> Stretch | Runs | None:
    """Something to take of an axis of this length."""
    if draw(st.booleans()):
        start, end = sorted(draw(st.tuples(*[st.integers(0, length)] * 2)))
        return draw(st.sampled_from([None, Stretch.between(start, end)]))
    step = draw(st.sampled_from([n for n in range(1, length + 1) if length % n == 0]))
    start, end = sorted(draw(st.lists(st.integers(0, step), min_size=2, max_size=2, unique=True)))
    return Runs(start, end - start, draw(st.integers(1, length // step)), step, length // step)


@st.composite
def regions(draw: st.DrawFn, count: int) -> tuple[tuple[int, ...], list[Region]]:
    """The shape of a weight, and regions of the weight."""
    shape = draw(st.lists(st.sampled_from([1, 4, 6, 12]), min_size=1, max_size=3))
    return tuple(shape), [tuple(draw(axis_parts(n)) for n in shape) for _ in range(count)]


def mask(shape: tuple[int, ...], region: Region) -> torch.Tensor:
    """Which entries a region holds."""
    found = np.zeros(math.prod(shape), dtype=bool)
    found[take_array(np.arange(len(found)).reshape(shape), region).ravel()] = True
    return torch.from_numpy(found).view(shape)


@given(regions(1))
def test_the_view_of_a_region_holds_what_the_region_takes(case: tuple[tuple[int, ...], list[Region]]) -> None:
    shape, (region,) = case
    weight = torch.arange(math.prod(shape)).view(shape)
    assert torch.equal(view(weight, region).flatten(), take_tensor(weight, region).flatten())
    assert view(weight, region).untyped_storage().data_ptr() == weight.untyped_storage().data_ptr()
    assert torch.equal(outside(weight, region), weight[~mask(shape, region)])


@given(regions(2))
def test_a_union_holds_both_regions_and_gradients_of_both(case: tuple[tuple[int, ...], list[Region]]) -> None:
    shape, (one, other) = case
    both = union(one, other, shape)
    whole = tuple(None for _ in shape)
    assert union(one, one, shape) == one
    for region in (one, other):
        assert (mask(shape, both) | ~mask(shape, region)).all()
        gradient = take_tensor(torch.randn(shape), region)
        expected = in_region(region, gradient, whole, shape)
        assert torch.equal(in_region(both, in_region(region, gradient, both, shape), whole, shape), expected)


def test_a_union_is_as_small_as_a_stretch_can_be() -> None:
    assert union((Stretch(2, 3),), (Stretch(4, 4),), (12,)) == (Stretch(2, 6),)
    assert union((Stretch(0, 3),), (Stretch(2, 10),), (12,)) == (None,)
    assert union((Runs(0, 2, 3, 4, 3),), (Runs(0, 3, 3, 4, 3),), (12,)) == (Stretch(0, 11),)
    assert union((Stretch(2, 3),), (None,), (12,)) == (None,)
