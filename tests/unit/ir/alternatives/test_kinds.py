"""Alternatives in closed form: nearest to what their operators say on pictures, against references of their own."""

import numpy as np
import pytest
import torch
from tests import networks
from torch.nn import functional

import autotailor
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.execution.modules.moments import MomentCollector
from autotailor.ir.junctions import SOURCES, junctions
from autotailor.ir.space.variable import Modification
from autotailor.ir.supernet import SuperNet

ASKED = {"low_rank": [0.75, 0.5, 0.25], "depthwise": True}


def pictures(count: int, seed: int) -> torch.Tensor:
    """Smooth pictures, whose pixels and channels are correlated as those of photographs are."""
    drawn = torch.randn(count, 3, 8, 8, generator=torch.Generator().manual_seed(seed))
    mixed = torch.einsum("dc,nchw->ndhw", torch.tensor([[1.0, 0.6, 0.3], [0.2, 1.0, 0.7], [0.1, 0.4, 1.0]]), drawn)
    return functional.interpolate(mixed, (32, 32), mode="bilinear")


@pytest.fixture(scope="module", params=["resnet", "transformer"])
def nets(request: pytest.FixtureRequest) -> tuple[SuperNet, SuperNet]:
    """A network whose alternatives follow from weights alone, and the same one solved on pictures."""
    space = {**networks.SPACES[request.param], "alternatives": ASKED}
    plain = autotailor.compile(networks.make(request.param), space, resolution=32)
    collector = MomentCollector(plain.elastic)
    with torch.no_grad():
        for seed in range(4):
            collector(pictures(32, seed))
    return plain, plain.with_weights(collector.alternatives())


@torch.no_grad()
def errors(net: SuperNet) -> dict[tuple[str, str], np.ndarray]:
    """Source of each junction to the mean square of its error for each rank, on pictures that nothing was solved on."""
    module, values = GraphModule(net.graph).eval(), {net.graph.input: pictures(64, 100)}
    written = {name for node in net.graph.nodes for name in node.outputs}
    module.advance(values, 0, len(net.graph.nodes), hold=written)
    found = {}
    for node in junctions(net.graph):
        target = values[node.inputs[0]]
        for kind, name in zip(node.get(SOURCES)[1:], node.inputs[1:], strict=True):
            last = net.graph.producers[name]
            inner = values[last.inputs[0]]
            axis = 1 if last.kind == "Conv" else inner.ndim - 1
            ranks = range(1, inner.shape[axis] + 1) if kind == "low_rank" else [inner.shape[axis]]
            said = []
            for rank in ranks:
                cut = inner.clone()
                cut.movedim(axis, 0)[rank:] = 0.0
                arguments = [module.weight(each) if each else None for each in last.inputs[1:]]
                y = (
                    functional.conv2d(cut, *arguments)
                    if last.kind == "Conv"
                    else cut @ (arguments[0].mT if last.get("transB", 0) else arguments[0])
                    + (arguments[1] if len(arguments) > 1 else 0.0)
                )
                said.append(float((y - target).square().mean()))
            found[node.name, kind] = np.array(said)
    return found


def test_no_rank_is_worse_than_that_of_the_singular_values(nets: tuple[SuperNet, SuperNet]) -> None:
    plain, solved = map(errors, nets)
    low = [key for key in plain if key[1] == "low_rank"]
    assert low
    for key in low:
        assert (solved[key] <= plain[key] * 1.01 + 1e-9).all(), key
    assert sum(solved[key].mean() for key in low) < 0.8 * sum(plain[key].mean() for key in low)


def test_the_map_behind_a_depthwise_convolution_is_solved(nets: tuple[SuperNet, SuperNet]) -> None:
    plain, solved = map(errors, nets)
    for key in (key for key in plain if key[1] == "depthwise"):
        assert solved[key][0] < plain[key][0], key


def test_a_pair_of_factors_is_the_best_of_its_rank() -> None:
    """The error on the pictures that it was solved on is what the smallest eigenvalues of the responses leave."""
    net = autotailor.compile(
        networks.make("resnet"), {**networks.SPACES["resnet"], "alternatives": {"low_rank": [0.5]}}
    )
    images = pictures(64, 7)
    collector = MomentCollector(net.elastic)
    with torch.no_grad():
        collector(images)
    net = net.with_weights(collector.alternatives())
    module, values = GraphModule(net.graph).eval(), {net.graph.input: images}
    with torch.no_grad():
        module.advance(values, 0, len(net.graph.nodes), hold={n for node in net.graph.nodes for n in node.outputs})
    for node in junctions(net.graph):
        target, said = (values[name].movedim(1, -1).flatten(0, -2).double().numpy() for name in node.inputs[:2])
        rank = values[net.graph.producers[node.inputs[1]].inputs[0]].shape[1]
        left = np.linalg.eigvalsh(np.cov(target.T, bias=True))[:-rank].sum()
        assert np.square(target - said).sum(1).mean() == pytest.approx(left, rel=1e-3, abs=1e-6)


def test_gradients_reach_the_factors() -> None:
    net = autotailor.compile(
        networks.make("resnet"), {**networks.SPACES["resnet"], "alternatives": {"low_rank": [0.5]}}
    )
    block = next(v for v in net.space if v.kind == "operator")
    module = net.module().activate(net.largest().transform(Modification(block.name, "low_rank:0.5"))).train()
    module(torch.randn(2, *net.input_shape[1:])).sum().backward()
    trained = {
        n for n, a in module.weight_names.items() if (w := getattr(module, a)).requires_grad and w.grad is not None
    }
    owner = next(b for b in net.blocks if b.name == block.owner)
    reads = {node.inputs[1] for node in owner.nodes if node.name.endswith("low_rank.reads")}
    assert reads
    assert reads <= trained
