"""The axis of the batch, moved to the front, against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from autotailor.ir.dimensions.batch_axis import batch_axis, batch_first, renumbered
from autotailor.ir.dimensions.dimension import Atom, Batch, Constant, Product

SHAPE = (3, 2, 5, 7)
X = np.random.default_rng(0).normal(size=SHAPE)


def test_the_axis_of_the_batch_is_that_which_holds_it() -> None:
    heads = Product((Batch(), Atom("heads", 4)))
    assert batch_axis((Constant(3), Batch(), Constant(5))) == 1
    assert batch_axis((Constant(3), Constant(2), heads)) == 2
    assert batch_axis((Constant(3), Constant(1))) == 0


@pytest.mark.parametrize("batch", range(4))
def test_a_shape_with_its_batch_in_front_is_that_of_the_moved_array(batch: int) -> None:
    assert batch_first(SHAPE, {"x": batch}, "x") == np.moveaxis(X, batch, 0).shape
    assert batch_first(SHAPE, {"x": batch}, "other") == batch_first(SHAPE, None, "x") == SHAPE


@pytest.mark.parametrize("batch", range(4))
@pytest.mark.parametrize("axes", [(1,), (0, 3), (-1, 2), (3, 0, 1)])
def test_a_reduction_sums_the_same_numbers(batch: int, axes: tuple[int, ...]) -> None:
    found = dict(renumbered((("axes", axes),), batch, 4))["axes"]
    moved, expected = np.moveaxis(X, batch, 0).sum(found, keepdims=True), X.sum(axes, keepdims=True)
    np.testing.assert_allclose(moved, np.moveaxis(expected, batch, 0))


@pytest.mark.parametrize("batch", range(4))
@pytest.mark.parametrize("axis", range(-4, 4))
def test_a_single_axis_is_the_same_one(batch: int, axis: int) -> None:
    found = dict(renumbered((("axis", axis),), batch, 4))["axis"]
    moved = np.cumsum(np.moveaxis(X, batch, 0), found)
    np.testing.assert_array_equal(moved, np.moveaxis(np.cumsum(X, axis), batch, 0))


@pytest.mark.parametrize("batch", range(4))
def test_permutations_keep_the_order_of_all_axes_behind_the_batch(batch: int) -> None:
    for perm in itertools.permutations(range(4)):
        found = dict(renumbered((("perm", perm),), batch, 4))["perm"]
        moved = np.moveaxis(X, batch, 0).transpose(found)
        np.testing.assert_array_equal(moved, np.moveaxis(X.transpose(perm), perm.index(batch), 0))
