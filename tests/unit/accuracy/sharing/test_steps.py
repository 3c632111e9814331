"""What the steps of SubNets say: which results are alike, what they cost, and how much memory they hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import autotailor
import networks
from autotailor.accuracy.sharing.steps import ELEMENT, Steps, steps_of
from autotailor.ir.space.subnet import SubNet, sample_distinct
from autotailor.ir.space.variable import Modification


def steps(net: autotailor.SuperNet, subnet: SubNet) -> Steps:
    return steps_of(net.elastic, net.module().prepare(subnet))


def shared(one: Steps, other: Steps) -> int:
    """Number of leading steps that two SubNets have in common."""
    pairs = enumerate(zip(one.keys, other.keys, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(one.keys), len(other.keys)))


@torch.no_grad()
def test_tensors_are_equal_exactly_where_all_steps_before_are(any_net: autotailor.SuperNet) -> None:
    """Behind the last common step the SubNets have other weights or other shapes."""
    module, base = any_net.module().eval(), any_net.largest()
    side = any_net.shapes(base)[any_net.graph.input][-1]
    images = torch.randn(2, 3, side, side)
    first = steps(any_net, base)
    for variable in any_net.space:
        if variable.name == "resolution":
            continue
        subnet = base.transform(Modification(variable.name, variable.choices[0 if variable.default else -1]))
        same = shared(first, steps(any_net, subnet))
        assert same < len(first.keys)
        found = []
        for each in (base, subnet):
            module.activate(each)
            values = {module.schedule.source: images}
            module.advance(values, 0, same, hold=frozenset(any_net.graph.shapes))
            found.append((values, module.schedule.nodes[same]))
        (one, node), (other, changed) = found
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)
        names = [name for name in (*node.inputs, *node.outputs) if name in any_net.graph.shapes]
        shapes = (any_net.shapes(base), any_net.shapes(subnet))
        weights = [name for name in node.inputs if name in any_net.graph.weights]
        slices = [[module.activate(each).weight(name).shape for name in weights] for each in (base, subnet)]
        same_shapes = all(shapes[0][name] == shapes[1].get(name) for name in names)
        assert node.name != changed.name or node.inputs != changed.inputs or not same_shapes or slices[0] != slices[1]


def test_subnets_of_other_resolutions_have_another_source(resnet_net: autotailor.SuperNet) -> None:
    base = resnet_net.largest()
    sides = [steps(resnet_net, base.transform(Modification("resolution", side))).source[-1] for side in (20, 24, 32)]
    assert sides == [20, 24, 32]


def test_work_is_the_macs_and_the_elements_that_are_written(resnet_net: autotailor.SuperNet) -> None:
    for subnet in sample_distinct(resnet_net.space, 5, np.random.default_rng(0)):
        found, prepared = steps(resnet_net, subnet), resnet_net.module().prepare(subnet)
        shapes = resnet_net.shapes(subnet)
        written = sum(
            math.prod(shapes[name])
            for node in prepared.schedule.nodes
            if node.kind != "Flatten"
            for name in node.outputs
        )
        macs = 1e6 * resnet_net.macs().predict(subnet.to_array())[0]
        assert found.work[-1] == pytest.approx(macs + ELEMENT * written)


@torch.no_grad()
@pytest.mark.parametrize("name", ["resnet", "mobilenet", "transformer", "grouped", "shuffled"])
def test_no_tensor_holds_more_memory_than_its_size_says(name: str) -> None:
    space = networks.SPACES.get(name, {"width": [0.5, 1.0]})
    net = autotailor.compile(networks.make(name), space, name=name, resolution=32)
    for subnet in (net.largest(), net.smallest()):
        module = net.module().eval().activate(subnet)
        found = steps(net, subnet)
        values = {module.schedule.source: torch.randn(4, *found.source[1:])}
        module.advance(values, 0, len(module.schedule.nodes), hold=frozenset(net.graph.shapes))
        assert len(values) > 10
        for tensor, value in values.items():
            assert value.untyped_storage().nbytes() <= 4 * found.sizes[tensor], tensor
