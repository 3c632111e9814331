"""Alternatives of blocks: the same network as before where none is chosen, and no surprise where one is."""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests import networks

import autotailor
from autotailor.ir.alternatives.alternative import Alternative, alternatives, register_alternative
from autotailor.ir.alternatives.copies import copy_junctions
from autotailor.ir.errors import GraphError, SpaceError
from autotailor.ir.fusion.groups import fuse
from autotailor.ir.fusion.places import group_feature
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.junctions import JUNCTION, ORIGINAL
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Modification
from autotailor.ir.supernet import UNFUSED, SuperNet
from autotailor.profiling.runtimes.ncnn.fusion import NCNN_FUSION
from autotailor.profiling.runtimes.onnxruntime.fusion import ONNXRUNTIME_FUSION

ASKED = {"low_rank": [0.5, 0.75], "depthwise": True}
REBUILT = {"ghost": [2, 3], "fire": True, "shrunk": [0.5, 0.25]}
FUSIONS = [UNFUSED, NCNN_FUSION, ONNXRUNTIME_FUSION]
MERGING = {"resnet": {"stage2": [0, 1]}, "mobilenet": {"stage1": [0]}, "transformer": {"stage1": [0, 2]}}
"""Depths that leave something to merge: a merged block never stands in for one that depth removes alone."""


def space_of(name: str) -> dict[str, object]:
    """The space of a network, which is called ``NAME, merged`` or ``NAME, rebuilt`` after what is asked for."""
    name, _, copied = name.partition(", ")
    return {**networks.SPACES[name], **({"depth": MERGING[name]} if copied == "merged" else {})}


def compiled(name: str, asked: object = None) -> SuperNet:
    space, (name, _, copied) = space_of(name), name.partition(", ")
    copies = {"merged": {"merged": [1, 2]}, "rebuilt": {**REBUILT, "merged": [1]}}
    asked = {"low_rank": [0.5], **copies[copied]} if copied else ASKED if asked is None else asked
    space = {**space, "alternatives": asked}
    return autotailor.compile(networks.make(name), space, name=name, resolution=32)


@pytest.fixture(
    scope="module",
    params=[*sorted(networks.SPACES), *(f"{name}, {copied}" for name in MERGING for copied in ("merged", "rebuilt"))],
)
def net(request: pytest.FixtureRequest) -> SuperNet:
    return compiled(request.param)


def some(net: SuperNet, count: int = 8) -> list[SubNet]:
    rng = random.Random(0)
    single = [net.largest().transform(Modification(v.name, c)) for v in net.space for c in v.choices]
    return [
        net.largest(),
        net.smallest(),
        *single[:: max(1, len(single) // count)],
        *(net.sample(rng) for _ in range(count)),
    ]


def given_of(net: SuperNet) -> SuperNet:
    """The same without alternatives."""
    space = {key: value for key, value in (net.space_config or {}).items() if key != "alternatives"}
    return autotailor.compile(networks.make(net.name), space, name=net.name, resolution=32)


def test_the_largest_subnet_is_the_given_network(net: SuperNet) -> None:
    given = given_of(net)
    image = torch.randn(2, *net.input_shape[1:])
    assert torch.equal(net.build(net.largest())(image), given.build(given.largest())(image))
    assert [replace(v, gate=None) for v in net.space if v.kind != "operator"] == [
        replace(v, gate=None) for v in given.space
    ]
    asked = {name for v in net.space if v.gate is not None for name in v.gate.variables}
    if not copy_junctions(net.graph):
        assert [v for v in net.space if v.kind != "operator" and v.gate is None] == [
            v for v in given.space if v.gate is None
        ]
    else:
        assert {v.owner for v in net.space if v.kind == "operator" and v.name in asked} >= {"block2"}


def test_standalone_subnets_compute_what_the_supernet_computes(net: SuperNet) -> None:
    module = net.module().eval()
    for subnet in some(net):
        image = torch.randn(2, 3, *[subnet.assignment.get("resolution", 32)] * 2)
        sliced = net.slice(subnet)
        assert JUNCTION not in {node.kind for node in sliced.nodes}
        torch.testing.assert_close(net.build(subnet)(image), module.activate(subnet)(image), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("fusion", FUSIONS, ids=lambda fusion: fusion.name)
def test_deduced_operators_are_those_of_the_subnets_own_graphs(net: SuperNet, fusion: FusionRules) -> None:
    for subnet in some(net):
        deduced = Counter(place.feature(subnet) for place in net.places(fusion))
        del deduced[None]
        graph = net.slice(subnet)
        shapes = {**graph.shapes, **{name: tuple(weight.shape) for name, weight in graph.weights.items()}}
        assert deduced == Counter(group_feature(graph, group, shapes) for group in fuse(graph, fusion)), subnet


def test_counts_of_weights_are_those_of_the_subnets_own_graphs(net: SuperNet) -> None:
    for subnet in some(net):
        graph = net.slice(subnet)
        counted = sum(weight.size for weight in graph.weights.values() if weight.size > 1) / 1e6
        assert net.parameters().predict(subnet.to_array())[0] <= counted * (1 + 1e-9)
    whole, given = net.parameters().predict(net.largest().to_array())[0], given_of(net)
    assert whole == pytest.approx(given.parameters().predict(given.largest().to_array())[0])


def test_it_is_the_same_after_saving(net: SuperNet, tmp_path) -> None:
    net.save(tmp_path / "net.pt")
    again = SuperNet.load(tmp_path / "net.pt")
    assert again.space == net.space
    subnet = some(net)[-1]
    image = torch.randn(1, 3, *[subnet.assignment.get("resolution", 32)] * 2)
    assert torch.equal(again.build(SubNet(again.space, subnet.indices))(image), net.build(subnet)(image))
    asked = dict((net.space_config or {})["alternatives"])
    ordered = {kind: sorted(asked[kind], reverse=True) for kind in ("low_rank", "shrunk") if kind in asked}
    assert again.space_section()["alternatives"] == {**asked, **ordered}


def test_a_space_without_the_variables_is_the_space_without_alternatives() -> None:
    skipped = autotailor.compile(
        networks.make("resnet"),
        {**networks.SPACES["resnet"], "alternatives": ASKED, "skip": ["*.operator"]},
        resolution=32,
    )
    given = autotailor.compile(networks.make("resnet"), networks.SPACES["resnet"], resolution=32)
    assert skipped.space == given.space
    assert set(skipped.operators(fusion=NCNN_FUSION)) == set(given.operators(fusion=NCNN_FUSION))
    assert skipped.parameters().predict(skipped.largest().to_array()) == pytest.approx(
        given.parameters().predict(given.largest().to_array())
    )


def test_blocks_may_have_alternatives_of_their_own() -> None:
    asked = {
        "low_rank": [0.5],
        "blocks": {"Bottleneck": {"depthwise": True}, "block2": {"low_rank": [0.75]}, "block3": {}},
    }
    net = compiled("resnet", asked)
    found = {v.owner: v.choices[1:] for v in net.space if v.kind == "operator"}
    assert found == {
        "block1": ("depthwise",),
        "block2": ("low_rank:0.75",),
        **dict.fromkeys(["block4", "block5"], ("depthwise",)),
    }
    again = net.space_section()["alternatives"]
    assert compiled("resnet", again).space == net.space
    with pytest.raises(SpaceError, match=r"alternatives.blocks: no block is named or of kind 'block9'"):
        compiled("resnet", {"blocks": {"block9": {"depthwise": True}}})


def test_ranks_are_prefixes_and_take_their_share_of_the_macs() -> None:
    net = compiled("resnet", {"low_rank": [0.75, 0.5]})
    base = net.largest()
    block = next(v for v in net.space if v.kind == "operator")
    macs = net.macs()
    costs = [macs.predict(base.transform(Modification(block.name, c)).to_array())[0] for c in block.choices]
    assert costs == sorted(costs, reverse=True)
    assert len(set(costs)) == len(costs)
    wide, narrow = (net.slice(base.transform(Modification(block.name, c))) for c in ("low_rank:0.75", "low_rank:0.5"))
    for name, weight in narrow.weights.items():
        if name.endswith("low_rank.reads.weight"):
            np.testing.assert_array_equal(weight, wide.weights[name][: len(weight)])


def test_what_is_there_only_under_some_choices_has_a_gate_that_says_so(net: SuperNet) -> None:
    gates, operators = net.elastic.node_gates, {v.name for v in net.space if v.kind == "operator"}
    if not copy_junctions(net.graph):
        chosen = {name for name, gate in gates.items() if operators & set(gate.variables)}
        apart = {node.name for node in net.graph.nodes if ":low_rank." in node.name or ":depthwise." in node.name}
        assert chosen == apart | {node.name for node in net.graph.nodes if node.outputs[0].endswith(f":{ORIGINAL}")}
    present = [n for n in net.graph.nodes if n.kind != JUNCTION and n.name not in net.elastic.absent]
    for subnet in some(net):
        there = {node.name for node in net.slice(subnet).nodes}
        assert there == {n.name for n in present if subnet.opens(gates.get(n.name))}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"low_rank": 0.5}, r"alternatives.low_rank: expected a list of shares between 0 and 1"),
        ({"low_rank": [0.5, 1.5]}, r"expected a list of shares between 0 and 1"),
        ({"low_rank": "0.5"}, r"expected a list of shares between 0 and 1"),
        ({"depthwise": [1]}, r"alternatives.depthwise: expected true or false, not \[1\]"),
        ({"merged": [3]}, r"alternatives.merged: expected a list of the numbers of blocks that one spares, 1 or 2"),
        ({"merged": True}, r"alternatives.merged: expected a list"),
        ({"ghost": [1]}, r"alternatives.ghost: expected a list of numbers of parts, 2 to 8, such as \[2\]"),
        ({"ghost": [True]}, r"alternatives.ghost: expected a list"),
        ({"ghost": "22"}, r"alternatives.ghost: expected a list"),
        (
            {"tucker": True},
            r"no kind is called 'tucker'; known are \['depthwise', 'fire', 'ghost', 'low_rank', 'merged'",
        ),
        (["low_rank"], r"space.alternatives: expected names with their choices"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(asked: object, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        compiled("resnet", asked)


def test_a_kind_registers_once_and_whole() -> None:
    with pytest.raises(GraphError, match="two alternatives of kind low_rank"):
        register_alternative(type("Other", (type(alternatives()["low_rank"]),), {}))
    with pytest.raises(GraphError, match="it lacks build and choices and fits and solve"):
        register_alternative(type("Empty", (Alternative,), {"kind": "empty"}))
    with pytest.raises(GraphError, match="derives from Alternative"):
        register_alternative(int)  # type: ignore[arg-type]


def test_gates_know_the_choices_that_rounding_leaves() -> None:
    net = compiled("resnet", {"low_rank": [0.75, 0.74, 0.5], "shrunk": [0.5]})
    assert any(variable.endswith(".operator") for variable, *_ in net.space.merged)
    one = net.largest().transform(Modification("block2.operator", "shrunk:0.5"))
    assert one.transform(Modification("block2.expand_ratio", 0.25)) == one
    assert one.transform(Modification("block3.expand_ratio", 0.25)) != one
