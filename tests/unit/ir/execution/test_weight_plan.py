"""What a plan takes of a weight is the same in NumPy and in PyTorch, and is what index sets say."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autotailor.ir.dimensions.dimension import Atom, Constant, Dimension, Kernel, Product, Resolution, Sum
from autotailor.ir.execution.weight_plan import (
    Resampling,
    Runs,
    Selection,
    Stretch,
    add_gradient,
    inside,
    plan_weight,
    region_of,
    take_array,
    take_tensor,
    union,
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
    assert [type(part) for part in plan] == [Resampling, Resampling, Stretch]
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
def test_gradients_are_added_where_the_weight_was_taken(axes: tuple[Dimension, ...]) -> None:
    plan = plan_weight(axes, size)
    weight = torch.randn([axis.meta for axis in axes], requires_grad=True)
    taken = take_tensor(weight, plan)
    gradient = torch.randn_like(taken)
    (expected,) = torch.autograd.grad(taken, weight, gradient)
    found = torch.ones_like(weight)
    add_gradient(found, plan, gradient)
    torch.testing.assert_close(found, 1 + expected)


PARTS = [
    (A, (0, 2)),
    (Constant(3), (0, 3)),
    (Sum((A, B)), (0, 7)),  # two of the first four entries, and three of the last four
    (Product((Constant(3), A)), (0, 10)),  # of three runs the last two entries of the last one are not taken
    (Sum((Constant(1), R)), (0, 7)),  # interpolated: of every entry something is taken
]


@pytest.mark.parametrize(("axis", "expected"), PARTS, ids=["stretch", "whole", "selection", "runs", "resampling"])
def test_the_region_of_a_plan_is_the_smallest_block_that_holds_what_is_taken(
    axis: Dimension, expected: tuple[int, int]
) -> None:
    plan = plan_weight((Constant(2), axis), size)
    assert region_of(plan, (2, axis.meta)) == ((0, 2), expected)
    weight = torch.zeros(2, axis.meta)
    add_gradient(weight, plan, torch.ones_like(take_tensor(weight, plan)))
    touched = weight[0].nonzero().flatten()
    assert (int(touched.min()), int(touched.max()) + 1) == expected


ENDS = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(lambda ends: (min(ends), max(ends)))


@given(st.lists(ENDS, min_size=1, max_size=4), st.data())
def test_a_region_and_what_is_outside_of_it_are_all_of_a_weight_once(
    region: list[tuple[int, int]], data: st.DataObject
) -> None:
    shape = [data.draw(st.integers(end, 7)) for _, end in region]
    counts = torch.zeros(shape)
    for part in outside(counts, tuple(region)):
        part += 1
    assert (inside(counts, tuple(region)) == 0).all()
    inside(counts, tuple(region)).add_(1)
    assert (counts == 1).all()


@given(st.lists(st.tuples(ENDS, ENDS), min_size=1, max_size=4))
def test_a_union_holds_both_regions_and_no_block_that_is_smaller_does(
    pairs: list[tuple[tuple[int, int], tuple[int, int]]],
) -> None:
    one, other = zip(*pairs, strict=True)
    found = union(one, other)
    assert union(found, one) == union(found, other) == found
    assert all({start, end} <= {*first, *second} for (start, end), first, second in zip(found, one, other, strict=True))
