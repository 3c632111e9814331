"""What is written for an operator is what pnnx writes for it: single layers, then whole networks."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import autotailor
import networks
from autotailor.ir.feature import OperatorFeature
from autotailor.profiling import DeviceConfig, ProfilingError, open_runtime
from autotailor.profiling.networks.validation import input_shape
from autotailor.profiling.runtimes import NcnnRuntime
from autotailor.profiling.runtimes.ncnn.claims import claims
from autotailor.profiling.runtimes.ncnn.layers import LAYERS, fragment

DEVICE = DeviceConfig.from_section({"name": "test"})


class Case(nn.Module):
    """A convolution, then what is tested, then a global pool and a classifier."""

    def __init__(self, tested: nn.Module) -> None:
        super().__init__()
        self.stem, self.tested = nn.Conv2d(3, 16, 3, 2, 1), tested
        self.head = nn.LazyLinear(5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(F.adaptive_avg_pool2d(self.tested(self.stem(x)), 1).flatten(1))


class Residual(nn.Module):
    def __init__(self, activation: nn.Module) -> None:
        super().__init__()
        self.conv, self.activation = nn.Conv2d(16, 16, 1), activation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.activation(x + self.conv(x))


class Margins(nn.Module):
    """Padding by zeros and by reflection, ranges of channels and of the image."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        grown = F.pad(F.relu(F.pad(x, (0, 1, 0, 1))), (1, 2, 1, 0), mode="reflect")
        return F.max_pool2d(grown[:, 3:], 2)[:, :, 1:]


class Reductions(nn.Module):
    """Global response normalisation, split attention's sum, and a maximum."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        norm = torch.linalg.vector_norm(x, dim=(2, 3), keepdim=True)
        x = x * (norm / (norm.mean(1, keepdim=True) + 1e-6))
        pieces = x.reshape(x.shape[0], 2, 8, *x.shape[2:])
        gates = x.sum(1, keepdim=True) + x.amax(1, keepdim=True)
        return pieces.sum(1) * torch.sigmoid(gates)


class Normalised(nn.Module):
    """Groups, one group for all channels with and without shifts, and channels by themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.groups, self.one = nn.GroupNorm(4, 16, eps=1e-4), nn.GroupNorm(1, 16)
        self.each = nn.InstanceNorm2d(16, affine=True)
        self.gain = nn.Parameter(torch.rand(16, 1, 1) + 0.5)
        for norm in (self.groups, self.one, self.each):
            nn.init.uniform_(norm.weight, 0.5, 1.5)
            nn.init.uniform_(norm.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.each(self.one(self.groups(x))) * self.gain


class Powers(nn.Module):
    """Squares, roots and other powers; a constant of the innermost axis."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(16) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = (F.relu(x) ** 2 + 0.1) ** 0.5 + (x.abs() + 0.1) ** 1.5
        return (y.permute(0, 2, 3, 1) * self.scale).permute(0, 3, 1, 2)


class Resized(nn.Module):
    """Twice as large by the nearest pixel, then by linear interpolation."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        near = F.interpolate(x, scale_factor=2, mode="nearest")
        return F.interpolate(near, scale_factor=2, mode="bilinear", align_corners=False)


CASES = {
    "margins and ranges": Margins(),
    "reductions": Reductions(),
    "group and instance norm": Normalised(),
    "powers": Powers(),
    "resized": Resized(),
    "relu": nn.Sequential(nn.ReLU(), nn.Conv2d(16, 8, 1, bias=False)),
    "depthwise, relu6": nn.Sequential(nn.Conv2d(16, 16, 5, 2, 2, groups=16), nn.ReLU6()),
    "grouped, leaky relu": nn.Sequential(nn.Conv2d(16, 32, 3, 1, 1, groups=4), nn.LeakyReLU(0.2)),
    "dilated, sigmoid": nn.Sequential(nn.Conv2d(16, 8, 3, 1, 2, dilation=2), nn.Sigmoid()),
    "rectangular kernel": nn.Conv2d(16, 8, (1, 3), (2, 1), (0, 1)),
    "max pool": nn.MaxPool2d(3, 2, 1),
    "max pool, ceil": nn.MaxPool2d(2, 2, ceil_mode=True),
    "average pool": nn.AvgPool2d(3, 2, 1, count_include_pad=False),
    "add, relu": Residual(nn.ReLU()),
    "add, hard swish": Residual(nn.Hardswish()),
}


@pytest.mark.parametrize("name", CASES)
def test_operators_of_a_network_claim_the_layers_pnnx_writes(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = Case(CASES[name]).eval()
    network(torch.zeros(1, 3, 18, 18))
    net = autotailor.compile(network, {}, resolution=18)
    runtime = open_runtime(DEVICE)
    net.export_onnx(net.largest(), tmp_path / "model.onnx")
    runtime.convert(tmp_path / "model.onnx", tmp_path)
    features = [feature for place in net.places(runtime.fusion) for feature in place.features.flat]
    bill = claims(tmp_path / "model.ncnn.param", features, net.input_shape)
    assert bill.complete, (bill.unclaimed, bill.idle)
    image = np.random.default_rng(0).random(net.input_shape, dtype=np.float32)
    (wanted,) = onnxruntime.InferenceSession(str(tmp_path / "model.onnx")).run(None, {"input": image})
    np.testing.assert_allclose(runtime.run(tmp_path, image), wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize("model", ["resnet_digits", "mobilenet_digits"])
def test_every_layer_of_a_subnet_is_claimed_once_and_its_numbers_are_right(model: str, tmp_path: Path) -> None:
    net = autotailor.compile(f"autotailor.zoo:{model}", resolution=32)
    subnet = net.smallest()
    runtime = open_runtime(DEVICE)
    net.export_onnx(subnet, tmp_path / "model.onnx")
    runtime.convert(tmp_path / "model.onnx", tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.ncnn.bin", "model.ncnn.param", "model.onnx"]
    bill = claims(tmp_path / "model.ncnn.param", subnet_features(net, subnet, runtime), input_shape(net, subnet))
    assert bill.complete, (bill.unclaimed, bill.idle)
    images = np.random.default_rng(0).random((3, *input_shape(net, subnet)[1:]), dtype=np.float32)
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    expected = np.concatenate([session.run(None, {"input": image[None]})[0] for image in images])
    assert np.abs(runtime.run(tmp_path, images) - expected).max() <= 1e-4 * np.abs(expected).max()


def subnet_features(net: autotailor.SuperNet, subnet: autotailor.SubNet, runtime: NcnnRuntime) -> list[OperatorFeature]:
    """The operators of one SubNet, one for each place."""
    features = (place.feature(subnet) for place in net.places(runtime.fusion))
    return [feature for feature in features if feature is not None]


def test_unknown_kinds_are_named() -> None:
    shape = (1, 8, 4, 4)
    with pytest.raises(ProfilingError, match=r"kind Einsum.*Conv.*ncnn/layers"):
        fragment(OperatorFeature("Einsum", (shape,), (shape,)))


def test_what_ncnn_does_not_fuse_is_refused() -> None:
    from autotailor.ir.feature import Follower

    shape = (1, 8, 4, 4)
    with pytest.raises(ProfilingError, match="does not fuse Add with Relu"):
        fragment(OperatorFeature("Add", (shape, shape), (shape,), followers=(Follower("Relu"),)))


def test_every_kind_is_one_function() -> None:
    assert {"Conv", "Gemm", "MaxPool", "AveragePool", "GlobalAveragePool", "ReduceMean", "Concat"} <= set(LAYERS)
    assert {"Add", "Mul", "Sub", "Div", "Relu", "Clip", "Sigmoid", "HardSwish", "HardSigmoid", "Softmax"} <= set(LAYERS)


def test_a_broken_onnx_file_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_text("no network")
    with pytest.raises(ProfilingError, match="pnnx cannot convert"):
        open_runtime(DEVICE).convert(tmp_path / "model.onnx", tmp_path / "out")


def test_a_layer_that_ncnn_does_not_have_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.ncnn.param").write_text("7767517\n2 2\nInput in0 0 1 in0\nReduceMin m 1 1 in0 out0\n")
    (tmp_path / "model.ncnn.bin").write_bytes(b"")
    with pytest.raises(ProfilingError, match=r"^ncnn has no layer ReduceMin: pnnx, .*take another runtime"):
        NcnnRuntime(DEVICE).run(tmp_path, np.zeros((1, 3, 8, 8), np.float32))


def test_a_network_over_which_ncnn_crashes_ends_no_process_but_its_own(tmp_path: Path) -> None:
    net = autotailor.compile(networks.Inside().eval(), {}, resolution=16)
    net.export_onnx(net.largest(), tmp_path / "model.onnx")
    runtime = open_runtime(DEVICE)
    runtime.convert(tmp_path / "model.onnx", tmp_path)
    with pytest.raises(ProfilingError, match=r"ncnn ends its process \(exit code -11\).*take another runtime"):
        runtime.run(tmp_path, np.zeros(net.input_shape, np.float32))
