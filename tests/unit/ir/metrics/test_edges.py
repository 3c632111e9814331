"""Settings of operators and edges between them, beside the graphs of single SubNets."""

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import autotailor
import networks
from autotailor.ir.errors import SpaceError
from autotailor.ir.feature import Attributes, Engine, Settings, Shape
from autotailor.ir.fusion.groups import FusedGroup, fuse
from autotailor.ir.fusion.places import group_feature
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.graph import Graph
from autotailor.ir.metrics.edges import find_edges
from autotailor.ir.metrics.memory import is_view
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Space, Variable
from autotailor.ir.supernet import UNFUSED, SuperNet
from autotailor.profiling.runtimes.ncnn.fusion import NCNN_FUSION
from autotailor.profiling.runtimes.onnxruntime.fusion import ONNXRUNTIME_FUSION

DEVICE = Engine("ncnn")
INT8 = Engine("ncnn", "int8").setting(DEVICE)
PLAIN = Engine("ncnn", options=(("winograd", 0),)).setting(DEVICE)
ENGINES = {"device": (), "int8": INT8, "plain": PLAIN}


def with_engines(net: SuperNet, per: str) -> SuperNet:
    """The network with an engine to choose for each block, or one for all blocks together."""
    blocks = {block.name: block.name if per == "block" else "blocks" for block in net.blocks}
    variables = {
        owner: Variable(f"{owner}.engine", "engine", tuple(ENGINES), 0, net.elastic.gates.get(owner), owner)
        for owner in blocks.values()
    }
    settings = {
        node.name: Settings(f"{blocks[block.name]}.engine", tuple(ENGINES.values()))
        for block in net.blocks
        for node in block.nodes
    }
    space = Space((*net.space, *variables.values()))
    architecture = replace(net.elastic.architecture, space=space)
    return replace(net, elastic=replace(net.elastic, architecture=architecture, settings=settings))


@pytest.fixture(scope="module", params=["resnet", "mobilenet, all blocks together", "resnet, low rank"])
def nets(request: pytest.FixtureRequest) -> tuple[SuperNet, SuperNet]:
    """A network without engines to choose, and the same with them."""
    name, _, further = request.param.partition(", ")
    space = {**networks.SPACES[name], **({"alternatives": {"low_rank": [0.5]}} if further == "low rank" else {})}
    plain = autotailor.compile(networks.make(name), space, name=name, resolution=32)
    return plain, with_engines(plain, "all" if further.startswith("all") else "block")


@pytest.fixture
def plain(nets: tuple[SuperNet, SuperNet]) -> SuperNet:
    return nets[0]


@pytest.fixture
def net(nets: tuple[SuperNet, SuperNet]) -> SuperNet:
    return nets[1]


def crossing(one: Attributes, other: Attributes, shape: Shape) -> float:
    """A cost that tells each pair of settings and each shape apart."""
    return (2.0 + len(one) + 3.0 * len(str(other))) * float(np.prod(shape)) ** 0.5


def some(net: SuperNet) -> Iterator[SubNet]:
    rng = random.Random(0)
    yield from (net.largest(), net.smallest(), *(net.sample(rng) for _ in range(20)))


def setting_of(net: SuperNet, subnet: SubNet, node: str) -> Attributes:
    own = net.elastic.settings.get(node)
    return () if own is None else ENGINES[str(subnet.assignment[own.variable])]


def operators(net: SuperNet, subnet: SubNet, fusion: FusionRules) -> Iterator[str]:
    """Feature ids of the operators of a SubNet, from its own graph."""
    graph = net.slice(subnet)
    shapes = {**graph.shapes, **{name: tuple(weight.shape) for name, weight in graph.weights.items()}}
    for group in fuse(graph, fusion):
        setting = setting_of(net, subnet, group.producer.name)
        yield replace(group_feature(graph, group, shapes), setting=setting).id


def crossings(net: SuperNet, subnet: SubNet, fusion: FusionRules) -> float:
    """What the edges of a SubNet cost, from its own graph, operator by operator."""
    graph, total = net.slice(subnet), 0.0
    groups: dict[str, FusedGroup] = {node.name: group for group in fuse(graph, fusion) for node in group.members}
    forms: dict[str, Attributes] = {graph.input: ()}
    for node in graph.nodes:
        group = groups.get(node.name)
        reads = graph.activations(node)
        if reads and (group is None or is_view(group.producer)):
            forms.update(dict.fromkeys(node.outputs, forms[reads[0]]))
            continue
        assert group is not None
        own = setting_of(net, subnet, group.producer.name)
        if node == group.members[-1]:
            total += sum(cost(graph, forms, name, own) for name in outside(graph, group))
        forms.update(dict.fromkeys(node.outputs, own))
    return total + sum(cost(graph, forms, name, ()) for name in graph.outputs)


def outside(graph: Graph, group: FusedGroup) -> list[str]:
    """Tensors that a kernel reads from others, each once."""
    own = {name for node in group.members for name in node.outputs}
    return list(dict.fromkeys(n for node in group.members for n in graph.activations(node) if n not in own))


def cost(graph: Graph, forms: dict[str, Attributes], name: str, own: Attributes) -> float:
    return 0.0 if forms[name] == own else crossing(forms[name], own, graph.shapes[name])


@pytest.mark.parametrize("fusion", [UNFUSED, NCNN_FUSION, ONNXRUNTIME_FUSION], ids=lambda fusion: fusion.name)
def test_latency_is_the_sum_over_operators_and_edges_of_each_subnets_own_graph(
    net: SuperNet, fusion: FusionRules
) -> None:
    rng = np.random.default_rng(0)
    latencies = {feature.id: float(rng.uniform(1.0, 2.0)) for feature in net.operators(fusion=fusion)}
    metric = net.latency(latencies, fusion, crossing)
    spent = []
    for subnet in some(net):
        edges = crossings(net, subnet, fusion)
        alone = sum(latencies[id_] for id_ in operators(net, subnet, fusion))
        assert metric.predict(subnet.to_array())[0] == pytest.approx(alone + edges), subnet
        spent.append(edges)
    assert spent[0] == 0.0 < max(spent)


def test_where_nothing_is_set_the_operators_and_their_ids_are_those_of_before(plain: SuperNet, net: SuperNet) -> None:
    before, now = (set(each.operators(fusion=NCNN_FUSION)) for each in (plain, net))
    assert before == {feature for feature in now if not feature.setting}
    assert len(now) > len(before)
    assert all("setting" not in feature.to_json() for feature in before)
    assert all(type(feature).from_json(feature.to_json()) == feature for feature in now)
    assert find_edges(plain.elastic, plain.places(NCNN_FUSION), NCNN_FUSION) == ()


def test_a_setting_says_in_what_an_engine_differs_from_the_devices() -> None:
    assert DEVICE.setting(DEVICE) == ()
    assert INT8 == (("precision", "int8"),)
    assert PLAIN == (("option winograd", 0),)
    assert Engine("onnxruntime").setting(DEVICE) == (("runtime", "onnxruntime"),)


def test_a_variable_that_sets_an_engine_changes_no_size(plain: SuperNet) -> None:
    width = next(variable for variable in plain.space if variable.kind == "resolution")
    node = plain.blocks[0].nodes[0].name
    elastic = replace(plain.elastic, settings={node: Settings(width.name, ((),) * len(width.choices))})
    with pytest.raises(SpaceError, match=f"{width.name} sets the engine"):
        replace(plain, elastic=elastic).places(UNFUSED)
