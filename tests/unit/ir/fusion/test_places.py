"""Fused operators of a space, against brute force over all SubNets."""

import itertools
import random

import numpy as np
import pytest

import autotailor
from acceptance import checks
from autotailor.ir.dimensions.dimension import Atom, Batch, Constant, Product
from autotailor.ir.fusion.places import batch_axis, batch_first, renumbered
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.space import joint_sizes
from autotailor.ir.space.subnet import stack
from branched_networks import NETWORKS, SIDE
from conv_fusion import CONV_RULES

FUSION = FusionRules("test", folds=frozenset({("Conv", "BatchNormalization")}), fuses=frozenset({("Conv", "Relu")}))

SHAPE = (3, 2, 5, 7)
X = np.random.default_rng(0).normal(size=SHAPE)


@pytest.mark.parametrize("limit", [1, joint_sizes.TABLE_LIMIT])
def test_operators_of_a_dense_network_are_those_of_brute_force(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_sizes, "TABLE_LIMIT", limit)
    space = {"resolution": [8, 16], "blocks": {"Branch": {"width": [0.5, 1.0], "expand_ratio": [1.0, 2.0]}}}
    net = autotailor.compile(NETWORKS["dense"](), space, name="dense", resolution=SIDE)
    assert sum(v.kind == "width" for v in net.space) == 5
    assert any(p.derived is not None for p in net.places(FUSION)) == (limit == 1)
    choices = [range(len(v.choices)) for v in net.space]
    every = [autotailor.SubNet(net.space, row) for row in itertools.product(*choices)]
    assert {f for s in every for f in net.operators(s, FUSION)} == set(net.operators(fusion=FUSION))
    some = random.Random(0).sample(every, 12)
    for subnet in some:
        standalone = autotailor.SuperNet.of(net.slice(subnet), {})
        assert set(net.operators(subnet, FUSION)) == set(standalone.operators(fusion=FUSION))
    built = [sum(p.numel() for p in net.build(s).parameters()) for s in some]
    assert net.parameters().predict(stack(some)) * 1e6 == pytest.approx(np.array(built))


def test_operators_of_the_space_are_those_of_its_subnets(any_net: autotailor.SuperNet) -> None:
    """Against brute force: operators read off the sliced graphs of all SubNets (or a sample of them)."""
    found = set(any_net.operators(fusion=CONV_RULES))
    rng = random.Random(2)
    seen: set[object] = set()
    for _ in range(3000):
        seen.update(any_net.operators(any_net.sample(rng), CONV_RULES))
        if seen == found:
            break
    assert seen == found


def test_a_subnets_operators_are_those_of_its_sliced_graph(any_net: autotailor.SuperNet) -> None:
    for subnet in checks.subnets(any_net, 4):
        graph = any_net.slice(subnet)
        standalone = autotailor.SuperNet.of(graph, {})
        assert set(any_net.operators(subnet, CONV_RULES)) == set(standalone.operators(fusion=CONV_RULES))


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
