"""Peak memory of many SubNets at once, against walking through each SubNet's own graph."""

import math
import random

import numpy as np
import pytest
from tests.networks import SPACES, Shuffled, TinyMobileNet, TinyResNet
from torch import nn

import autotailor
from autotailor.ir.feature import OperatorFeature
from autotailor.ir.fusion.groups import FusedGroup, fuse
from autotailor.ir.fusion.places import group_feature
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.graph import Graph
from autotailor.ir.metrics import liveness
from autotailor.ir.operators.rule import OperatorRule, rules
from autotailor.ir.space.subnet import SubNet, stack
from autotailor.ir.space.variable import Modification
from autotailor.ir.supernet import UNFUSED, SuperNet

NCNN = FusionRules(
    "ncnn",
    frozenset({("Conv", "BatchNormalization")}),
    frozenset({("Conv", "Relu"), ("GlobalAveragePool", "Flatten")}),
    frozenset({"Identity"}),
)


def walked(graph: Graph, fusion: FusionRules, workspace: dict[str, float]) -> float:
    """Largest MiB of buffers during a run of a SubNet's graph, each freed after its last reader."""
    groups = fuse(graph, fusion)
    buffer = {graph.input: graph.input}
    reads: list[set[str]] = []
    for group in groups:
        nodes = (group.producer, *group.folded, *group.followers)
        own = {name for node in nodes for name in node.outputs}
        inputs = {name for node in nodes for name in graph.activations(node)} - own
        view = rule(group).view
        for name in group.outputs:
            buffer[name] = buffer[next(iter(inputs))] if view else name
        reads.append(set() if view else {buffer[name] for name in inputs})
    reads.append({buffer[graph.output]})
    live, peak = {graph.input}, 0.0
    for step, group in enumerate(groups):
        later = set().union(*reads[step + 1 :])
        if not rule(group).view:
            scratch = workspace.get(group_feature(graph, group, shapes(graph)).id, 0.0)
            in_place = rule(group).elementwise and not reads[step] & (later | {graph.input})
            new = set() if in_place else set(group.outputs)
            peak = max(peak, scratch + sum(mib(graph.shapes[name]) for name in live | new))
            live |= set(group.outputs)
        live &= later
    return peak


def rule(group: FusedGroup) -> OperatorRule:
    return rules.find(group.producer.kind) or OperatorRule()


def mib(shape: tuple[int, ...]) -> float:
    return math.prod(shape) * 4 / 2**20


def shapes(graph: Graph) -> dict[str, tuple[int, ...]]:
    return {**graph.shapes, **{name: tuple(weight.shape) for name, weight in graph.weights.items()}}


def weights(operators: list[OperatorFeature], known: dict[str, float]) -> float:
    return sum(known.get(f.id, sum(mib(shape) for shape in f.weights)) for f in operators)


def some(net: SuperNet) -> list[SubNet]:
    rng = random.Random(0)
    return [net.largest(), net.smallest(), *(net.sample(rng) for _ in range(40))]


@pytest.mark.parametrize("network", [TinyResNet, TinyMobileNet, Shuffled])
@pytest.mark.parametrize("fusion", [UNFUSED, NCNN], ids=lambda fusion: fusion.name)
def test_it_is_what_walking_through_each_subnet_gives(network: type[nn.Module], fusion: FusionRules) -> None:
    net = autotailor.compile(network(), resolution=32)
    rng = random.Random(1)
    features = net.operators(fusion=fusion)
    resident = {f.id: rng.random() for f in features if f.weights and rng.random() < 0.5}
    computing = [f for f in features if not (rules.find(f.kind) or OperatorRule()).view]
    workspace = {f.id: rng.random() / 4 for f in computing if rng.random() < 0.3}
    subnets = some(net)
    predicted = net.peak_memory(fusion, resident=resident, workspace=workspace).predict(stack(subnets))
    for subnet, value in zip(subnets, predicted, strict=True):
        placed = [place.feature(subnet) for place in net.places(fusion)]
        expected = weights([f for f in placed if f is not None], resident)
        assert value == pytest.approx(expected + walked(net.slice(subnet), fusion, workspace), rel=1e-9)


@pytest.mark.parametrize(
    "alternatives", [{"low_rank": [0.5], "depthwise": True}, {"merged": [1, 2], "depthwise": True}]
)
@pytest.mark.parametrize("fusion", [UNFUSED, NCNN], ids=lambda fusion: fusion.name)
def test_it_is_that_of_the_alternatives_which_a_subnet_has(
    fusion: FusionRules, alternatives: dict[str, object]
) -> None:
    asked = {**SPACES["resnet"], "alternatives": alternatives}
    net = autotailor.compile(TinyResNet(), asked, resolution=32)
    subnets = some(net)
    predicted = net.peak_memory(fusion).predict(stack(subnets))
    for subnet, value in zip(subnets, predicted, strict=True):
        placed = [place.feature(subnet) for place in net.places(fusion)]
        expected = weights([f for f in placed if f is not None], {})
        assert value == pytest.approx(expected + walked(net.slice(subnet), fusion, {}), rel=1e-9)


def test_removing_a_block_never_needs_more() -> None:
    net = autotailor.compile(TinyResNet(), resolution=32)
    memory = net.peak_memory()
    depth = next(v.name for v in net.space if v.kind == "depth")
    values = [
        memory.predict(net.largest().transform(Modification(depth, c)).to_array())[0] for c in net.space[depth].choices
    ]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("network", [TinyResNet, TinyMobileNet, Shuffled])
@pytest.mark.parametrize("largest", [0, 20_000])
def test_tables_of_steps_and_steps_without_a_table_agree(
    network: type[nn.Module], largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "LARGEST", largest)
    net = autotailor.compile(network(), resolution=32)
    rng = random.Random(2)
    workspace = {f.id: rng.random() / 4 for f in net.operators(fusion=NCNN) if rng.random() < 0.3}
    steps = net.peak_memory(NCNN, workspace=workspace).liveness
    array = stack([net.sample(rng) for _ in range(300)])
    np.testing.assert_allclose(steps.peaks(array), steps.live(array).max(axis=1), rtol=1e-12)
    assert (bool(steps.wide), bool(steps.tables)) == (largest == 0, largest > 0)
