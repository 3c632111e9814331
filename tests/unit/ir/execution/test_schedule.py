"""Forward passes that stop at a position and go on there."""

import numpy as np
import pytest
import torch

import autotailor
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.execution.schedule import find_overwritten, overwrite
from autotailor.ir.graph import Graph, Node
from autotailor.ir.space.subnet import sample_distinct
from autotailor.ir.space.variable import Modification

Line = tuple[str, tuple[str, ...], str]
SHAPE = (1, 4, 6, 6)
CONV, BN = ("Conv", ("in", "W"), "c"), ("BatchNormalization", ("in", "V", "V", "V", "V"), "b")


@torch.no_grad()
def test_a_pass_goes_on_from_the_live_tensors_at_any_position(any_net: autotailor.SuperNet) -> None:
    module, random = any_net.module(logits=True).eval(), np.random.default_rng(0)
    for subnet in sample_distinct(any_net.space, 3, random):
        module.activate(subnet)
        schedule = module.schedule
        side = any_net.shapes(subnet)[any_net.graph.input][-1]
        images = torch.randn(2, 3, side, side)
        expected, end = module(images), len(schedule.nodes)
        for position in random.choice(end + 1, 6, replace=False):
            values = {schedule.source: images}
            module.advance(values, 0, position)
            assert set(values) >= set(schedule.live[position])
            kept = {name: values[name] for name in schedule.live[position]}
            module.advance(kept, position, end)
            assert torch.equal(module.logits(kept), expected)


def test_a_held_tensor_stays_behind_its_last_reader(resnet_net: autotailor.SuperNet) -> None:
    module = resnet_net.module().eval()
    schedule = module.schedule
    dropped = schedule.last[2][0]
    for hold in ((), (dropped,)):
        values = {schedule.source: torch.randn(1, 3, 32, 32)}
        module.advance(values, 0, 3, hold)
        assert (dropped in values) == bool(hold)


def test_a_prepared_subnet_runs_without_changing_the_active_one(resnet_net: autotailor.SuperNet) -> None:
    module, images = resnet_net.module().eval(), torch.randn(2, 3, 32, 32)
    small = resnet_net.largest().transform(Modification("stage1.depth", 1))
    with torch.no_grad():
        expected = module.activate(small)(images)
        module.activate(resnet_net.largest())
        prepared = module.prepare(small)
        assert module.active == resnet_net.largest()
        assert torch.equal(module.use(prepared)(images), expected)
    assert module.active == small


def overwritten(*lines: Line, **shapes: tuple[int, ...]) -> dict[str, int]:
    """Nodes that may overwrite; the last line writes the network's output."""
    nodes = tuple(Node(o, kind, i, (o,)) for kind, i, o in lines)
    weights = {"W": np.ones((4, 4, 1, 1), np.float32), "V": np.ones(4, np.float32)}
    known = dict.fromkeys(["in", *(node.name for node in nodes)], SHAPE) | shapes
    graph = Graph("test", nodes, "in", (nodes[-1].name,), known, weights)
    return find_overwritten(graph, nodes, graph.outputs)


@pytest.mark.parametrize("writer", [CONV, BN, ("Add", ("in", "in"), "a")], ids=lambda line: line[0])
def test_relu_overwrites_what_it_alone_reads(writer: Line) -> None:
    assert overwritten(writer, ("Relu", (writer[2],), "r"), ("Sigmoid", ("r",), "s")) == {"r": 0}


@pytest.mark.parametrize("kind", ["Relu", "Sigmoid", "Tanh", "Exp"])
def test_what_its_own_gradient_needs_stays(kind: str) -> None:
    assert overwritten((kind, ("in",), "e"), ("Relu", ("e",), "r")) == {}


def test_the_image_stays() -> None:
    assert overwritten(("Relu", ("in",), "r"), CONV) == {}


def test_what_others_read_stays() -> None:
    assert overwritten(CONV, ("Relu", ("c",), "r"), ("Mul", ("c", "r"), "m")) == {}
    assert overwritten(CONV, ("Add", ("c", "c"), "a")) == {}


def test_activations_of_other_kinds_write_anew() -> None:
    assert overwritten(CONV, ("Sigmoid", ("c",), "s")) == {}


def test_a_sum_overwrites_the_operand_that_nothing_needs() -> None:
    assert overwritten(CONV, ("Relu", ("in",), "r"), ("Add", ("c", "r"), "a")) == {"a": 0}
    assert overwritten(CONV, ("Relu", ("in",), "r"), ("Add", ("r", "c"), "a")) == {"a": 1}


def test_a_sum_that_broadcasts_writes_anew() -> None:
    lines = (CONV, ("Add", ("c", "in"), "a"))
    assert overwritten(*lines, c=(1, 4, 1, 1)) == {}
    assert overwritten(*lines) == {"a": 0}


def test_a_sum_of_two_types_has_the_wider_one() -> None:
    node = Node("a", "Add", ("x", "y"), ("a",))
    half, single = torch.ones(2, dtype=torch.bfloat16), torch.full((2,), 1e-4)
    assert overwrite(node, [half, single], 0).tolist() == (half + single).tolist()


def gradients(module: ElasticModule, images: torch.Tensor) -> list[torch.Tensor]:
    with module.train().slices() as slices:
        return [found.value for found in slices.gradients(module(images).square().mean())]


def test_gradients_are_the_same_bits(any_net: autotailor.SuperNet) -> None:
    images = torch.randn(2, *any_net.input_shape[1:])
    before = images.clone()
    module, plain = any_net.module(logits=True), any_net.module(logits=True)
    plain._overwritten = {}
    found, expected = gradients(module, images), gradients(plain, images)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert torch.equal(images, before)


def test_evaluation_writes_anew(resnet_net: autotailor.SuperNet) -> None:
    module = resnet_net.module()
    assert module.schedule.overwritten
    kept: list[tuple[torch.Tensor, torch.Tensor]] = []
    run = module._run

    def watched(node: Node, values: dict[str, torch.Tensor]) -> torch.Tensor:
        result: torch.Tensor = run(node, values)
        kept.append((result, result.clone()))
        return result

    module._run = watched  # type: ignore[method-assign, assignment]
    images = torch.randn(1, *resnet_net.input_shape[1:])
    with torch.no_grad():
        module.eval()(images)
        assert all(torch.equal(result, then) for result, then in kept)
        kept.clear()
        module.train()(images)
    assert not all(torch.equal(result, then) for result, then in kept)
