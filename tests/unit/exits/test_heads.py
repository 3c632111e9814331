from typing import Any

import numpy as np
import pytest
import torch

import autotailor
import networks
from autotailor.exits.answers import ExitError
from autotailor.exits.config import ExitsConfig
from autotailor.exits.heads import (
    Exit,
    check_places,
    cut,
    find_exits,
    head_operators,
    initial,
    operators_of,
    proposed,
    segments,
)
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.supernet import UNFUSED, SuperNet
from autotailor.profiling.runtimes.ncnn.fusion import NCNN_FUSION


def images(graph: Any, seed: int = 0) -> torch.Tensor:
    shape = graph.shapes[graph.input]
    return torch.randn(2, *shape[1:], generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kind", ["probe", "full"])
@pytest.mark.parametrize("seed", range(4))
def test_the_last_answer_is_that_of_the_network_without_exits_bit_by_bit(
    net: SuperNet, headed: Any, kind: str, seed: int
) -> None:
    network = headed(net, kind, seed)
    x = images(network.graph)
    with torch.no_grad():
        answers = GraphModule(network.graph).eval()(x)
        alone = GraphModule(network.stops[-1]).eval()(x)
    assert len(answers) == len(network.places) + 1
    assert torch.equal(answers[-1], alone)
    assert not any(name.startswith("exit") for name in network.stops[-1].weights)


@pytest.mark.parametrize("seed", range(4))
def test_a_chain_of_segments_answers_as_the_whole(net: SuperNet, headed: Any, seed: int) -> None:
    network = headed(net, "full", seed)
    handed = images(network.graph)
    with torch.no_grad():
        whole = GraphModule(network.graph).eval()(handed)
        for number, segment in enumerate(segments(network.graph, network.places)):
            found = GraphModule(segment).eval()(handed)
            handed, answer = found if isinstance(found, tuple) else (handed, found)
            assert torch.equal(answer, whole[number])


def test_a_head_reads_the_mean_of_the_tokens_of_a_transformer() -> None:
    net = autotailor.compile(networks.make("transformer"), resolution=32)
    graph = net.slice(net.largest())
    (place,) = find_exits(net, net.largest(), graph, ("block1",), "probe")
    assert place.shape == (1, *graph.shapes[place.tensor][1:])
    assert place.channels == graph.shapes[place.tensor][-1]
    with pytest.raises(ExitError, match="take head: probe"):
        check_places(net, ("block1",), "full")


def test_two_exits_behind_a_removed_block_are_one(net: SuperNet) -> None:
    shallow = net.smallest()
    places = find_exits(net, shallow, net.slice(shallow), ("block3", "block4"), "probe")
    assert [place.after for place in places] == ["block4"]


def test_two_names_of_one_place_are_refused(net: SuperNet) -> None:
    (stage,) = proposed(net)
    last = net.stages[0].blocks[-1].name
    with pytest.raises(ExitError, match=f"{stage} and {last} end at one place"):
        check_places(net, (stage, last), "probe")


def test_an_unknown_place_is_refused_with_what_was_meant(net: SuperNet) -> None:
    with pytest.raises(ExitError, match=r"no 'stage11'.*stage1, block1.*Did you mean 'stage1'"):
        check_places(net, ("stage11",), "probe")


def test_stages_but_the_last_are_proposed(net: SuperNet) -> None:
    assert proposed(net) == ("stage1",)


def test_the_last_stage_has_no_exit_behind_it(net: SuperNet) -> None:
    with pytest.raises(ExitError, match="no 'stage2'"):
        check_places(net, ("stage2",), "probe")


def test_an_exit_stands_where_nothing_leads_around_it(net: SuperNet) -> None:
    graph = net.slice(net.largest())
    inside = next(node.outputs[0] for node in net.blocks[1].nodes if node.kind == "Conv")
    with pytest.raises(ExitError, match=f"what follows {inside} reads .* as well"):
        cut(graph, inside, graph.outputs)


def test_heads_begin_with_weights_of_the_right_size() -> None:
    place = Exit("stage1", "x", (1, 200, 8, 8), 1)
    arrays = initial(place, "full", 7, np.random.default_rng(0))
    assert {name: array.shape for name, array in arrays.items()} == {
        "kernel": (128, 200, 3, 3),
        "shift": (128,),
        "weight": (7, 128),
        "bias": (7,),
    }


@pytest.mark.parametrize("fusion", [UNFUSED, NCNN_FUSION], ids=lambda rules: rules.name)
@pytest.mark.parametrize("kind", ["probe", "full"])
def test_the_operators_of_heads_are_those_of_all_subnets(
    net: SuperNet, headed: Any, kind: str, fusion: FusionRules
) -> None:
    after = (net.blocks[0].name, net.blocks[-2].name)
    listed = {each.feature: each.places for each in head_operators(net, ExitsConfig(after=after, head=kind), fusion)}
    found = dict.fromkeys(listed, 0)
    for seed in range(40):
        own = [set(operators_of(head, fusion)) for head in headed(net, kind, seed).heads]
        for feature in set().union(*own):
            found[feature] = max(found[feature], sum(feature in each for each in own))
    assert all(found.values())
    assert all(found[feature] <= places for feature, places in listed.items())
    assert not set(listed) <= set(net.operators(fusion=fusion))


def test_heads_of_tokens_are_enumerated_too() -> None:
    net = autotailor.compile(networks.make("transformer"), resolution=32)
    listed = head_operators(net, ExitsConfig(after=("block1",)), UNFUSED)
    assert {each.feature.kind for each in listed} == {"ReduceMean", "Gemm"}
    graph = net.slice(net.smallest())
    (place,) = find_exits(net, net.smallest(), graph, ("block1",), "probe")
    assert place.shape in {each.feature.inputs[0] for each in listed}
