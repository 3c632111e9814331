"""Slices in closed form: B is the least-squares answer, the largest SubNet stays, and every SubNet follows from B."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import autotailor
import networks
from autotailor.ir.execution.modules.moments import MomentCollector
from autotailor.ir.moments import Moments
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet

NETWORKS = ("resnet", "mobilenet", "transformer", "grouped")
IMAGES = torch.from_numpy(np.random.default_rng(0).normal(size=(48, 3, 32, 32)).astype(np.float32))


def collected(net: SuperNet, images: torch.Tensor = IMAGES) -> Moments:
    collector = MomentCollector(net.elastic)
    with torch.no_grad():
        collector(images)
    return collector.moments()


@pytest.fixture(scope="module", params=NETWORKS)
def solved(request: pytest.FixtureRequest) -> SuperNet:
    net = autotailor.compile(networks.make(request.param), networks.SPACES[request.param], resolution=32)
    return net.with_moments(collected(net)).sort_channels()


def answers(net: SuperNet, subnet: SubNet, images: torch.Tensor = IMAGES) -> torch.Tensor:
    with torch.no_grad():
        return net.module().eval().activate(subnet)(images)


def at_full_resolution(net: SuperNet, subnet: SubNet) -> SubNet:
    assignment = {name: choice for name, choice in subnet.assignment.items() if name != "resolution"}
    return SubNet.from_assignment(net.space, assignment)


def test_a_mixture_is_the_ridge_regression_of_all_channels_on_those_that_are_kept() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4000, 12)) @ rng.normal(size=(12, 12))
    kept, samples = np.array([0, 2, 3, 7]), len(x)
    moments = Moments({"x": (x.T @ x / samples).astype(np.float32)}, {}, {"x": samples}, ridge=1e-8)
    found = moments.mixture("x", kept)
    expected = np.linalg.lstsq(x[:, kept], x, rcond=None)[0]
    np.testing.assert_allclose(found, expected, atol=2e-3)
    np.testing.assert_allclose(found[:, kept], np.eye(4), atol=1e-3)


def test_few_samples_are_trusted_less() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(16, 12))
    moment = (x.T @ x / len(x)).astype(np.float32)
    few, many = (Moments({"x": moment}, {}, {"x": count}).mixture("x", np.arange(6)) for count in (16, 16_000))
    assert np.abs(few[:, 6:]).sum() < np.abs(many[:, 6:]).sum()


def test_the_largest_subnet_stays_bit_for_bit(solved: SuperNet) -> None:
    plain = solved.with_moments(None)
    assert torch.equal(answers(solved, solved.largest()), answers(plain, plain.largest()))


def test_channels_in_order_of_energy_compute_the_same(solved: SuperNet) -> None:
    again = collected(solved.with_moments(None))
    assert again.channels.keys() == solved.elastic.moments.channels.keys()  # type: ignore[union-attr]
    for name, moment in solved.elastic.moments.channels.items():  # type: ignore[union-attr]
        np.testing.assert_allclose(again.channels[name], moment, atol=1e-4 * np.abs(moment).max())
    for name, moment in solved.elastic.moments.taps.items():  # type: ignore[union-attr]
        np.testing.assert_allclose(again.taps[name], moment, atol=1e-4 * np.abs(moment).max())


def test_single_modifications_are_nearer_to_the_network_than_slices_as_they_stand(solved: SuperNet) -> None:
    plain, wanted = solved.with_moments(None), answers(solved, solved.largest())
    errors: dict[str, list[tuple[float, float]]] = {}
    for variable in solved.space:
        if variable.kind in ("resolution", "depth"):
            continue
        for choice in set(variable.choices) - {variable.choices[variable.default]}:
            subnet = SubNet.from_assignment(solved.space, {variable.name: choice})
            pair = [float((answers(net, subnet) - wanted).square().mean()) for net in (solved, plain)]
            errors.setdefault(variable.kind, []).append((pair[0], pair[1]))
    assert errors
    for kind, pairs in errors.items():
        closed, as_it_stands = np.mean(pairs, axis=0)
        assert closed < as_it_stands, kind


def test_the_module_the_standalone_network_and_its_file_agree(solved: SuperNet, tmp_path: Path) -> None:
    for subnet in (solved.smallest(), solved.sample(np.random.default_rng(3))):
        subnet = at_full_resolution(solved, subnet)
        wanted = answers(solved, subnet)[:2]
        with torch.no_grad():
            built = solved.build(subnet)(IMAGES[:2])
        scale = float(wanted.abs().max())
        assert torch.allclose(built, wanted, atol=1e-5 * scale)
        solved.export_onnx(subnet, tmp_path / "model.onnx")
        session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
        name = session.get_inputs()[0].name
        found = [session.run(None, {name: image[None].numpy()})[0] for image in IMAGES[:2]]
        assert np.abs(np.concatenate(found) - wanted.numpy()).max() <= 1e-4 * scale


def test_gradients_flow_through_the_mixtures(solved: SuperNet) -> None:
    """Gradients of slices, put into the places that they have in whole weights, are those of autograd."""
    module, subnet = solved.module().eval(), at_full_resolution(solved, solved.smallest())
    module.activate(subnet)(IMAGES[:4]).square().sum().backward()
    direct = {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}
    module.zero_grad()
    with module.slices() as slices:
        module.add_gradients(slices.gradients(module(IMAGES[:4]).square().sum()))
    module.partial_gradients.hand_over()
    found = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
    assert found.keys() == direct.keys()
    for name, gradient in direct.items():
        assert torch.allclose(found[name], gradient, rtol=1e-4, atol=1e-4 * float(gradient.abs().max()) + 1e-12)


def test_a_file_keeps_the_moments(solved: SuperNet, tmp_path: Path) -> None:
    net = solved.recalibrated(0.75)
    net.save(tmp_path / "net.pt")
    loaded = autotailor.load(tmp_path / "net.pt")
    subnet = at_full_resolution(net, net.smallest())
    assert loaded.elastic.recalibrated == 0.75
    assert torch.equal(answers(loaded, subnet), answers(net, subnet))


def test_a_weight_that_two_operators_read_stays_as_it_stands() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.tied, self.head = nn.Conv2d(3, 16, 3, 2, 1), nn.Conv2d(16, 16, 1), nn.Linear(16, 5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.tied(self.tied(self.first(x).relu()).relu()).relu()
            return self.head(x.mean((2, 3)))

    net = autotailor.compile(Tied().eval(), {"width": [0.5, 1.0]}, resolution=32)
    assert {reader.weight for reader in net.elastic.readers.values()} <= {
        node.inputs[1] for node in net.graph.nodes if node.kind == "Gemm"
    }


def test_pixels_under_the_taps_are_those_that_the_kernel_reads() -> None:
    class Depthwise(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Conv2d(3, 8, 1)
            self.deep = nn.Conv2d(8, 8, 5, 2, 4, dilation=2, groups=8, bias=False)
            self.head = nn.Linear(8, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.deep(self.stem(x)).mean((2, 3)))

    torch.manual_seed(0)
    network = Depthwise().eval()
    net = autotailor.compile(network, resolution=11)
    reader = next(reader for reader in net.elastic.readers.values() if reader.depthwise)
    images = torch.randn(6, 3, 11, 11)
    with torch.no_grad():
        under = MomentCollector(net.elastic)._under_taps(reader, network.stem(images))
        expected = network.deep(network.stem(images)).movedim(1, 0).flatten(1)
        weight = network.deep.weight.flatten(1)
    assert torch.allclose((under @ weight[:, :, None])[..., 0], expected, atol=1e-5)
