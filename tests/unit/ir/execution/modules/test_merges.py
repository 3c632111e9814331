"""Merged blocks in closed form, against references of their own on the same pictures."""

import numpy as np
import pytest
import torch
from tests import networks
from tests.unit.ir.alternatives.test_kinds import pictures
from torch import nn

import autotailor
from autotailor.ir.alternatives.copies import copy_junctions
from autotailor.ir.alternatives.merging import Ending, activations_behind, ending_of
from autotailor.ir.alternatives.rebuilding import copied_again
from autotailor.ir.execution.batch_norm import adopt
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.execution.modules.merges import NEAR
from autotailor.ir.execution.modules.moments import MomentCollector
from autotailor.ir.execution.modules.statistics import NORMALISATION
from autotailor.ir.junctions import branch
from autotailor.ir.moments import RIDGE, ridge_share
from autotailor.ir.space.variable import Modification
from autotailor.ir.supernet import SuperNet


class Basic(nn.Module):
    """Residual blocks of two convolutions of 3x3, the first of which halves the map and has a shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(*networks.conv_bn(3, 8, 3, 2), nn.ReLU())
        self.mains = nn.ModuleList(
            nn.Sequential(*networks.conv_bn(i, 12, 3, s), nn.ReLU(), *networks.conv_bn(12, 12, 3))
            for i, s in ((8, 2), (12, 1), (12, 1))
        )
        self.shortcut, self.head = nn.Sequential(*networks.conv_bn(8, 12, 1, 2)), nn.Linear(12, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for place, main in enumerate(self.mains):
            x = torch.relu(main(x) + (x if place else self.shortcut(x)))
        return self.head(x.mean((2, 3)))


networks.MORE_NETWORKS["basic"] = Basic


def solved(net: SuperNet, count: int = 3) -> SuperNet:
    collector = MomentCollector(net.elastic)
    with torch.no_grad():
        for seed in range(count):
            collector(pictures(48, seed))
    return net.with_weights(collector.alternatives())


@pytest.fixture(scope="module", params=["resnet", "mobilenet", "transformer", "basic"])
def nets(request: pytest.FixtureRequest) -> tuple[SuperNet, SuperNet]:
    """A network whose merged blocks are copies, and the same one solved on pictures."""
    plain = autotailor.compile(networks.make(request.param), {"alternatives": {"merged": [1, 2]}}, resolution=32)
    return plain, solved(plain)


def before(net: SuperNet, junction: str, images: torch.Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray, Ending]:
    """What a merged block and the blocks say in front of activation functions, and what the last map reads."""
    node = next(each for each in copy_junctions(net.graph) if each.name == junction)
    ending = ending_of(net.graph, branch(net.graph, node, 1), node.inputs[1])
    target = node.outputs[0]
    assert ending is not None
    while (writer := net.graph.producers[target]).kind == "Junction":
        target = writer.inputs[0]
    names = (ending.before, activations_behind(net.graph, target)[1], ending.map.inputs[0])
    values, module = {net.graph.input: images}, GraphModule(net.graph).eval()
    with torch.no_grad():
        module.advance(values, 0, len(net.graph.nodes), hold={n for each in net.graph.nodes for n in each.outputs})
    said, wanted, read = (values[name].double().numpy() for name in names)
    return said, wanted, read, ending


def test_a_merged_block_is_nearer_to_the_blocks_than_their_copy(nets: tuple[SuperNet, SuperNet]) -> None:
    for junction in copy_junctions(nets[0].graph):
        copied, closed = (before(net, junction.name, pictures(48, 100))[:2] for net in nets)
        errors = [float(np.square(said - wanted).mean()) for said, wanted in (copied, closed)]
        assert errors[1] < errors[0], junction.name


def test_statistics_inside_a_merged_block_are_those_of_what_it_meets(nets: tuple[SuperNet, SuperNet]) -> None:
    """So that recalibration on the same pictures leaves the solved block as it is."""
    net = nets[1]
    name = copy_junctions(net.graph)[0].name.removesuffix(":junction")
    owner, choice = name.split(".", 1)
    subnet = net.largest().transform(Modification(f"{owner}.operator", choice.replace(".", ":")))
    norms = [each for each in net.slice(subnet).nodes if each.kind == NORMALISATION and each.name.endswith(name)]
    module = net.module().eval().activate(subnet)
    with module.collecting(stored=True) as collector, torch.no_grad():
        for seed in range(3):
            module(pictures(48, seed))
    for norm in norms:
        for stored, seen in zip(norm.inputs[3:], collector.statistics()[norm.name], strict=True):
            np.testing.assert_allclose(net.graph.weights[stored], seen.numpy(), rtol=0.05, atol=0.02)


def test_the_last_map_is_that_of_least_squares_near_to_the_copy() -> None:
    """The reference solves the same with rows for the ridge below those of the pixels."""
    plain = autotailor.compile(networks.make("resnet"), {"alternatives": {"merged": [1, 2]}}, resolution=32)
    net = solved(plain, 1)
    for junction in copy_junctions(net.graph):
        said, wanted, read, ending = before(net, junction.name, pictures(48, 0))
        rows, behind, target = (np.moveaxis(x, 1, -1).reshape(-1, x.shape[1]) for x in (read, said, wanted))
        own, copied = (behind_the_map(each, ending, rows) for each in (net, plain))
        rest = target - (behind - own) - copied
        centred, size = rows - rows.mean(0), rows.std(0)
        share = NEAR * ridge_share(RIDGE, rows.shape[1], len(rows))
        ridge = np.concatenate([centred, np.diag(np.sqrt(len(rows) * share) * size)])
        right = np.concatenate([rest - rest.mean(0), np.zeros((rows.shape[1], rest.shape[1]))])
        added = centred @ np.linalg.lstsq(ridge, right, rcond=None)[0] + rest.mean(0)
        np.testing.assert_allclose(own - copied, added, rtol=0.02, atol=0.02 * np.abs(added).max())


def behind_the_map(net: SuperNet, ending: Ending, rows: np.ndarray) -> np.ndarray:
    """What the last map of a merged block and the BatchNorm behind it say for what the map reads."""
    assert ending.norm is not None
    gain, shift, mean, variance = (net.graph.weights[name].astype(np.float64) for name in ending.norm.inputs[1:])
    weight = net.graph.weights[ending.map.inputs[1]][..., 0, 0].astype(np.float64)
    return (rows @ weight.T - mean) / np.sqrt(variance + 1e-5) * gain + shift


def test_a_block_that_says_what_it_reads_is_merged_without_an_error() -> None:
    """Inverted residuals end in no activation function, so that their copy is what least squares finds."""
    network, x = networks.make("mobilenet"), pictures(48, 0)
    with torch.no_grad():
        last = network.layers[5].main[-1]
        last.weight.zero_()
        last.bias.zero_()
        for norm in (module for module in network.modules() if isinstance(module, nn.BatchNorm2d)):
            norm.momentum = 1.0
        network.train()(x)  # statistics of these pictures, as a network has them whose BatchNorm was adopted
    net = autotailor.compile(network.eval(), {"alternatives": {"merged": [1]}}, resolution=32)
    one = net.largest().transform(Modification("block2.operator", "merged:1"))
    with torch.no_grad():
        wanted = net.build(net.largest())(x)
        for each in (net, solved(net, 1)):
            torch.testing.assert_close(each.build(one)(x), wanted, rtol=0.05, atol=0.05)


def test_copies_solved_again_are_solved_alike(nets: tuple[SuperNet, SuperNet]) -> None:
    plain, closed = nets
    again = closed.with_weights(copied_again(closed.graph))
    assert all((again.graph.weights[name] == weight).all() for name, weight in plain.graph.weights.items())


def adopted(net: SuperNet) -> SuperNet:
    """The same with the statistics of pictures in BatchNorm, as trained networks have them."""
    module = net.module().eval().activate(net.largest())
    with module.collecting(stored=True) as collector, torch.no_grad():
        for seed in range(3):
            module(pictures(48, seed))
    found = {name: (mean.numpy(), variance.numpy()) for name, (mean, variance) in collector.statistics().items()}
    graph = adopt(net.graph, found, every=True)
    return net.with_weights({**graph.weights, **copied_again(graph)})


@pytest.mark.parametrize("name", ["resnet", "mobilenet", "transformer"])
def test_a_rebuilt_block_is_nearer_to_the_block_than_as_it_was_built(name: str) -> None:
    asked = {"ghost": [2], "fire": True, "shrunk": [0.5]}
    plain = adopted(autotailor.compile(networks.make(name), {"alternatives": asked}, resolution=32))
    closed = solved(plain)
    for junction in copy_junctions(plain.graph):
        pairs = (before(net, junction.name, pictures(48, 100))[:2] for net in (plain, closed))
        errors = [float(np.square(said - wanted).mean()) for said, wanted in pairs]
        assert errors[1] < 0.8 * errors[0], junction.name
