"""Rebuilt blocks: which blocks have an inside to rebuild, and what a copy computes as it is built."""

from collections import Counter

import numpy as np
import pytest
import torch
from tests import boxed, networks
from torch import nn

import autotailor
from autotailor.ir.alternatives import rebuilding
from autotailor.ir.alternatives.copies import copy_junctions
from autotailor.ir.alternatives.insertion import given_by
from autotailor.ir.alternatives.kinds import fire
from autotailor.ir.alternatives.rebuilding import Interior, copied_again, of_blocks, rebuildable
from autotailor.ir.execution.modules.moments import MomentCollector
from autotailor.ir.graph import MIXING, reading_axis
from autotailor.ir.junctions import OWNER, branch, junctions
from autotailor.ir.space.variable import Modification
from autotailor.ir.supernet import SuperNet

REBUILT = {"ghost": [2], "fire": True, "shrunk": [0.5, 0.25]}


def rebuilt(name: str, **weights: np.ndarray) -> SuperNet:
    network = networks.make(name)
    with torch.no_grad():
        for key, value in weights.items():
            network.state_dict()[key.replace("__", ".")].copy_(torch.from_numpy(value))
    return autotailor.compile(network, {"alternatives": REBUILT}, name=name, resolution=32)


def interior(net: SuperNet, place: int) -> Interior:
    block = autotailor.compile(networks.make(net.name), {}, resolution=32).blocks[place]
    found = rebuildable(net.original, net.propagation, block)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        ("resnet", {"ghost": 5, "fire": 5, "shrunk": 5}),
        ("mobilenet", {"ghost": 3, "shrunk": 3}),
        ("transformer", {"shrunk": 3}),
        ("grouped", {}),
        ("shuffled", {"ghost": 3, "shrunk": 3}),
    ],
)
def test_a_kind_stands_beside_the_blocks_that_it_fits(network: str, expected: dict[str, int]) -> None:
    net = autotailor.compile(networks.make(network), {"alternatives": REBUILT}, resolution=32)
    choices = Counter(str(c).partition(":")[0] for v in net.space for c in v.choices[1:] if v.kind == "operator")
    choices["shrunk"] //= 2
    assert +choices == expected


@pytest.mark.parametrize(("network", "share"), [("resnet", 0.5), ("mobilenet", 0.25), ("transformer", 0.5)])
def test_a_shrunk_block_is_the_block_without_its_least_important_channels(network: str, share: float) -> None:
    net = rebuilt(network)
    inside, kind = interior(net, 1), of_blocks()["shrunk"]
    part = kind.rebuild(inside, f"shrunk:{share}")
    dimensions, weights = net.propagation.dimensions, dict(net.original.weights)
    for atom in inside.hidden:
        kept = next(
            weight.shape[list(dimensions[name]).index(atom)]
            for name, weight in part.weights.items()
            if atom in dimensions[name]
        )
        assert kept == pytest.approx(share * atom.meta, abs=4)
        gone = inside.order(atom)[kept:]
        for node in inside.block.nodes:
            name = node.inputs[1] if node.kind in MIXING else ""
            if name in weights and dimensions[name][reading_axis(node)] == atom:
                weights[name] = weights[name].copy()
                np.moveaxis(weights[name], reading_axis(node), 0)[gone] = 0.0
    one = net.largest().transform(Modification("block2.operator", f"shrunk:{share}"))
    image = torch.randn(2, 3, 32, 32)
    without = net.with_weights({n: w for n, w in weights.items() if n in net.original.weights})
    torch.testing.assert_close(net.build(one)(image), without.build(net.largest())(image), rtol=1e-3, atol=1e-3)


def test_a_ghost_block_writes_half_of_its_channels_from_the_other_half() -> None:
    net = rebuilt("mobilenet")
    joint = next(each for each in copy_junctions(net.graph) if each.name == "block2.ghost.2:junction")
    nodes = branch(net.graph, joint, 1)
    assert Counter(node.kind for node in nodes) == {
        "Conv": 4,
        "BatchNormalization": 4,
        "Clip": 3,
        "Concat": 1,
        "Add": 1,
    }
    convs = [node for node in nodes if node.kind == "Conv"]
    shapes = [net.graph.weights[node.inputs[1]].shape for node in convs]
    assert shapes == [(48, 24, 1, 1), (48, 1, 3, 3), (96, 1, 3, 3), (24, 96, 1, 1)]
    assert convs[1].inputs[0] == next(node.inputs[0] for node in nodes if node.kind == "Concat")


def test_a_fire_block_is_exact_where_nothing_is_squeezed_and_single_pixels_say_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fire, "SQUEEZED", 1.0)
    torch.manual_seed(0)
    weight = networks.make("resnet").state_dict()["stages.0.main.3.weight"].numpy().copy()
    weight[::2] *= np.eye(3)[1][:, None] * np.eye(3)[1]  # the middle tap alone
    net = rebuilt("resnet", stages__0__main__3__weight=weight)
    image = torch.randn(2, 3, 32, 32)
    one = net.largest().transform(Modification("block1.operator", "fire"))
    torch.testing.assert_close(net.build(one)(image), net.build(net.largest())(image), rtol=1e-3, atol=1e-3)
    other = net.largest().transform(Modification("block2.operator", "fire"))
    assert not torch.allclose(net.build(other)(image), net.build(net.largest())(image), rtol=1e-3, atol=1e-3)


def test_channels_that_say_least_are_the_last() -> None:
    name = "layers.4.main.7.weight"
    weight = networks.make("mobilenet").state_dict()[name].numpy().copy()
    weight[:, [3, 5]] *= 1e-6
    net = rebuilt("mobilenet", **{name.replace(".", "__"): weight})
    inside = interior(net, 1)
    assert set(inside.order(inside.hidden[0])[-2:]) == {3, 5}


def test_energy_is_that_of_a_rectified_normal_variable() -> None:
    deviation, mean = np.array([1.0, 2.0, -0.5]), np.array([0.5, -1.0, 0.0])
    drawn = np.random.default_rng(0).normal(size=(400_000, 3)) * deviation + mean
    expected = np.square(drawn.clip(min=0)).mean(0)
    np.testing.assert_allclose(rebuilding._rectified(deviation, mean), expected, rtol=0.02)


def test_copies_take_on_what_their_blocks_have_become() -> None:
    net = rebuilt("resnet")
    again = copied_again(net.graph)
    assert again.keys() == {n for j in copy_junctions(net.graph) for n in _weights(net, j)}
    assert all((net.graph.weights[name] == weight).all() for name, weight in again.items())
    source = "stages.0.main.6.weight"
    changed = net.with_weights({source: 2 * net.graph.weights[source]})
    after = copied_again(changed.graph)
    name = f"{source}:block1.shrunk.0.5"
    np.testing.assert_array_equal(after[name], 2 * again[name])


def _weights(net: SuperNet, joint: object) -> set[str]:
    return {name for node in branch(net.graph, joint, 1) for name in node.inputs if name in net.graph.weights}  # type: ignore[arg-type]


def test_a_block_that_ends_at_a_map_with_alternatives_has_alternatives_of_both() -> None:
    network = boxed.Network()
    for name, count in {"heat": 6, "size": 2}.items():
        network.heads[name] = nn.Sequential(*networks.conv_bn(48, 64, 3), nn.ReLU(), nn.Conv2d(64, count, 1))
    net = autotailor.compile(network.eval(), {"alternatives": {"low_rank": [0.5], "shrunk": [0.5]}}, resolution=32)
    joints = {joint.name: joint for joint in junctions(net.graph) if joint.outputs[0].startswith("heat")}
    assert [given_by(joint) for joint in joints.values() if not joint.get(OWNER)] == ["heat"], "its last map"
    owners = {block.name: block.output for block in net.blocks}
    operator = next(v for v in net.space if v.name.endswith(".operator") and "heat" in owners[v.owner])
    module, images = net.module().eval(), torch.randn(2, 3, 32, 32)
    collector = MomentCollector(net.elastic).eval()
    with torch.no_grad():
        collector(images)
        assert any(name.endswith("heat.3/Conv:low_rank.reads.weight") for name in collector.alternatives())
        for choice in operator.choices:
            subnet = net.largest().transform(Modification(operator.name, choice))
            torch.testing.assert_close(net.build(subnet)(images), module.activate(subnet)(images))
