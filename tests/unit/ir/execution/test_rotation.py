"""Linear streams in the coordinates that their readers need: the network stays, narrower streams keep more of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import autotailor
import networks
from autotailor.ir.execution.modules.moments import MomentCollector
from autotailor.ir.execution.rotation import bases, find_streams
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet

IMAGES = torch.from_numpy(np.random.default_rng(0).normal(size=(64, 3, 32, 32)).astype(np.float32))


class Stream(nn.Module):
    """A stream of 16 channels that one map writes, with BatchNorm or with a bias, and another one reads."""

    def __init__(self, norm: bool) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 24, 3, 2, 1), nn.ReLU())
        behind = nn.BatchNorm2d(16) if norm else nn.Identity()
        self.write = nn.Sequential(nn.Conv2d(24, 16, 1, bias=not norm), behind)
        self.read = nn.Sequential(nn.Conv2d(16, 32, 1, bias=False), nn.ReLU())
        self.head = nn.Linear(32, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.read(self.write(self.stem(x))).mean((2, 3)))


def answers(net: SuperNet, subnet: SubNet) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = net.module().eval().activate(subnet)(IMAGES)
    return found


def collected(net: SuperNet) -> SuperNet:
    collector = MomentCollector(net.elastic)
    with torch.no_grad():
        collector(IMAGES)
    return net.with_moments(collector.moments(ridge=1e-6))


def uneven(network: nn.Module) -> nn.Module:
    """Some statistics, gains and shifts for each BatchNorm, as training leaves them."""
    torch.manual_seed(1)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor, (low, high) in zip(
                (module.running_var, module.running_mean, module.weight.data, module.bias.data),
                ((0.3, 3), (-0.5, 0.5), (0.3, 2), (-0.5, 0.5)),
                strict=True,
            ):
                nn.init.uniform_(tensor, low, high)
    return network.eval()


@pytest.fixture(scope="module")
def mobile() -> SuperNet:
    return collected(
        autotailor.compile(uneven(networks.make("mobilenet")), networks.SPACES["mobilenet"], resolution=32)
    )


def test_the_network_stays_and_what_is_read_is_white(mobile: SuperNet) -> None:
    turned = mobile.rotated()
    assert turned.rotations.keys() == {stream.atom.name for stream in find_streams(mobile.elastic)} != set()
    wanted = answers(mobile, mobile.largest())
    assert torch.allclose(answers(turned, turned.largest()), wanted, atol=1e-5 * float(wanted.abs().max()))
    again = collected(turned).elastic.moments
    for stream in find_streams(mobile.elastic):
        for reader in stream.readers:
            said = turned.elastic.moments.channels[reader.tensor]  # type: ignore[union-attr]
            near = 2e-3 * np.abs(said).max()  # roundings in single precision differ by processor, to 1.2e-3 on one
            np.testing.assert_allclose(again.channels[reader.tensor], said, atol=near)  # type: ignore[union-attr]


def test_narrower_streams_are_nearer_to_the_network(mobile: SuperNet) -> None:
    wanted = answers(mobile, mobile.largest())
    plain, turned = mobile.sort_channels(), mobile.rotated().sort_channels()
    errors = []
    for variable in (v for v in mobile.space if v.kind == "width" and v.name != "stem.width"):
        subnet = SubNet.from_assignment(mobile.space, {variable.name: min(variable.choices)})
        errors.append([float((answers(net, subnet) - wanted).square().mean()) for net in (plain, turned)])
    before, after = np.array(errors).T
    assert after.sum() < before.sum(), errors


@pytest.mark.parametrize("norm", [True, False], ids=["BatchNorm", "bias"])
def test_what_a_lone_reader_loses_is_what_the_best_map_of_that_rank_loses(norm: bool) -> None:
    """Reduced-rank regression: the squares of the singular values of W C^(1/2) behind the first k are lost."""
    torch.manual_seed(0)
    net = collected(autotailor.compile(uneven(Stream(norm)), {"width": [0.5, 1.0]}, resolution=32))
    (stream,) = (each for each in find_streams(net.elastic) if each.atom.meta == 16)
    (reader,) = stream.readers
    weight = net.graph.weights[reader.weight].reshape(32, 16).astype(float)
    second = net.elastic.moments.channels[reader.tensor].astype(float)  # type: ignore[union-attr]
    values, vectors = np.linalg.eigh(second)
    lost = np.linalg.svd(weight @ (vectors * np.sqrt(values.clip(0))), compute_uv=False)[8:]
    turned = net.rotated()
    moments = turned.elastic.moments
    assert moments is not None
    narrow = turned.graph.weights[reader.weight].reshape(32, 16).astype(float)
    kept = np.arange(8)
    apart = narrow - (narrow @ moments.mixture(reader.tensor, kept).T.astype(float)) @ np.eye(16)[kept]
    found = np.trace(apart @ moments.channels[reader.tensor] @ apart.T)
    assert found == pytest.approx(np.square(lost).sum(), rel=0.02)


def test_streams_between_which_something_treats_channels_unlike_stay() -> None:
    net = collected(autotailor.compile(networks.make("resnet"), networks.SPACES["resnet"], resolution=32))
    assert find_streams(net.elastic) == ()
    assert net.rotated().rotations == {}


def test_the_compiled_network_follows_into_the_same_coordinates(mobile: SuperNet, tmp_path: Path) -> None:
    turned = mobile.rotated().sort_channels()
    turned.save(tmp_path / "net.pt")
    loaded = autotailor.load(tmp_path / "net.pt")
    subnet = loaded.sample(np.random.default_rng(3))
    assert torch.equal(answers(loaded, subnet), answers(turned, subnet))
    followed = mobile.with_moments(None).sorted_as(loaded)
    for name, weight in turned.graph.weights.items():
        np.testing.assert_allclose(followed.graph.weights[name], weight, atol=1e-5 * max(1e-3, np.abs(weight).max()))
    back = followed.sorted_as(mobile.with_moments(None))
    wanted = answers(mobile, mobile.largest())
    assert torch.allclose(answers(back, back.largest()), wanted, atol=1e-4 * float(wanted.abs().max()))


def test_nothing_is_known_without_moments(mobile: SuperNet) -> None:
    assert bases(replace(mobile.elastic, moments=None)) == {}
