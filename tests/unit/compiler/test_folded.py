"""BatchNorm that a file has folded into its convolutions: found by what the exporter recorded, put back, calibrated."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import nn

import autotailor
import networks
import tiny_data
from autotailor import accuracy, finetuning
from autotailor.ir.errors import GraphError
from autotailor.ir.execution.batch_norm import placeholders
from reference import assert_same, run

CALIBRATION = accuracy.CalibrationConfig(images=32, batch_size=16)


def folded(name: str, dynamo: bool = False) -> onnx.ModelProto:
    """As PyTorch's exporters write networks by default: for inference."""
    return trace(networks.make(name), dynamo)


def trace(network: nn.Module, dynamo: bool = False) -> onnx.ModelProto:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            network.eval(), (torch.zeros(1, 3, 32, 32),), None if dynamo else buffer, dynamo=dynamo, verbose=False,
            opset_version=20 if dynamo else 17,
        )  # fmt: skip
    return program.model_proto if dynamo else onnx.load_from_string(buffer.getvalue())


def tf_named(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same file with tf2onnx's producer and names."""
    renamed = onnx.ModelProto()
    renamed.CopyFrom(model)
    renamed.producer_name = "tf2onnx"
    names: dict[str, str] = {}
    for position, proto in enumerate(renamed.graph.node):
        if proto.op_type == "Conv" and proto.input[1].startswith("onnx::"):
            for slot, word in ((1, "weights"), (2, "bias")):
                names[proto.input[slot]] = f"model/conv{position}/Conv2D_{word}_fused_bn"
                proto.input[slot] = names[proto.input[slot]]
    for tensor in renamed.graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    return renamed


def count(net: autotailor.SuperNet) -> int:
    return sum(node.kind == "BatchNormalization" for node in net.graph.nodes)


@pytest.mark.parametrize("source", ["classic", "dynamo", "tf2onnx"])
def test_what_the_exporter_folded_is_put_back_where_it_was(source: str) -> None:
    model = folded("mobilenet", dynamo=source == "dynamo")
    model = tf_named(model) if source == "tf2onnx" else model
    assert not any(proto.op_type == "BatchNormalization" for proto in model.graph.node)
    net = assert_same(model, tolerance=1e-5, space=networks.SPACES["mobilenet"])
    plain = autotailor.compile(networks.make("mobilenet"), networks.SPACES["mobilenet"], resolution=32)
    behind = [net.graph.producers[n.inputs[0]].kind for n in net.graph.nodes if n.kind == "BatchNormalization"]
    assert behind == ["Conv"] * count(plain)
    assert net.space == plain.space
    assert len(placeholders(net.graph)) == count(net)
    kept = assert_same(model, space=networks.SPACES["mobilenet"], batch_norm="keep")
    assert count(kept) == 0


class Plain(nn.Module):
    """Biased convolutions that never had a normalisation, one with standardised weights."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 2, 1)
        self.scaled = nn.Conv2d(16, 16, 3, padding=1)
        self.gate = nn.Conv2d(16, 16, 1)
        self.head = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.stem(x))
        weight = (self.scaled.weight - self.scaled.weight.mean()) / self.scaled.weight.std()
        x = torch.relu(nn.functional.conv2d(x, weight, self.scaled.bias, padding=1))
        x = x * torch.sigmoid(self.gate(x.mean((2, 3), keepdim=True)))
        return self.head(x.mean((2, 3)))


@pytest.mark.parametrize("dynamo", [False, True])
def test_networks_without_normalisation_stay_so_unless_the_user_asks(dynamo: bool) -> None:
    torch.manual_seed(0)
    model = trace(Plain(), dynamo)
    assert count(assert_same(model)) == 0
    asked = assert_same(model, tolerance=1e-5, batch_norm="reinsert")
    assert count(asked) == 2  # the gate has maps of one pixel


def test_files_that_keep_batch_norm_are_left_alone() -> None:
    net = autotailor.compile(networks.make("resnet"), networks.SPACES["resnet"], resolution=32, batch_norm="reinsert")
    assert not placeholders(net.graph)
    with pytest.raises(GraphError, match="expected one of auto, reinsert, keep"):
        autotailor.compile(networks.make("resnet"), resolution=32, batch_norm="refold")  # type: ignore[arg-type]


class TestFirstCalibration:
    @pytest.fixture(scope="class")
    def model(self) -> onnx.ModelProto:
        return folded("mobilenet")

    @pytest.fixture(scope="class")
    def net(self, model: onnx.ModelProto) -> autotailor.SuperNet:
        return autotailor.compile(model, networks.SPACES["mobilenet"])

    @pytest.fixture(scope="class")
    def adopted(self, net: autotailor.SuperNet) -> autotailor.SuperNet:
        return accuracy.adopt_statistics(net, tiny_data.splits(), CALIBRATION)

    def test_the_largest_subnet_stays_the_same(self, model: onnx.ModelProto, adopted: autotailor.SuperNet) -> None:
        assert not placeholders(adopted.graph)
        image = np.random.default_rng(1).standard_normal((1, 3, 32, 32)).astype(np.float32)
        expected = run(model, image)
        with torch.no_grad():
            found = adopted.build(adopted.largest())(torch.from_numpy(image)).numpy()
        assert np.abs(found - expected).max() / np.abs(expected).max() < 1e-5

    def test_statistics_are_those_of_the_folded_network(
        self, net: autotailor.SuperNet, adopted: autotailor.SuperNet
    ) -> None:
        data = tiny_data.splits()
        images = next(iter(data.train.batches(0, 16)))[0]
        stem, first = net.graph.nodes[:2]
        with torch.no_grad():
            maps = net.module().eval()
            weight, bias = (maps.weight(name) for name in stem.inputs[1:3])
            outputs = torch.nn.functional.conv2d(images, weight, bias, stride=2, padding=1)
        once = accuracy.adopt_statistics(net, data, accuracy.CalibrationConfig(images=16, batch_size=16))
        gain, shift, mean, variance = (once.graph.weights[name] for name in first.inputs[1:])
        np.testing.assert_allclose(mean, outputs.mean((0, 2, 3)), atol=1e-5)
        np.testing.assert_allclose(variance, outputs.var((0, 2, 3)), rtol=1e-4)
        np.testing.assert_allclose(gain, np.sqrt(variance + 1e-5), rtol=1e-6)
        assert np.array_equal(shift, mean)
        assert accuracy.adopt_statistics(adopted, data, CALIBRATION) is adopted

    def test_every_subnet_can_be_recalibrated_from_then_on(
        self, net: autotailor.SuperNet, adopted: autotailor.SuperNet, tmp_path: Path
    ) -> None:
        data = tiny_data.splits()
        with pytest.raises(accuracy.AccuracyError, match="is not calibrated yet"):
            accuracy.calibrate(net.module().eval(), net.smallest(), data, CALIBRATION)
        smallest = adopted.smallest()
        statistics = accuracy.calibrate(adopted.module().eval(), smallest, data, CALIBRATION)
        images = data.train.batches(0, 16)
        batch = torch.nn.functional.interpolate(next(iter(images))[0], size=int(smallest["resolution"]))
        with torch.no_grad():
            module = adopted.module().eval().activate(smallest)
            stale = module(batch)
            module.statistics = statistics
            fresh = module(batch)
            built = adopted.build(smallest, statistics)(batch)
        assert torch.allclose(fresh, built, rtol=1e-4, atol=1e-4 * float(fresh.abs().max()))
        assert not torch.allclose(fresh, stale, rtol=1e-2)

    def test_finetuning_calibrates_first(self, net: autotailor.SuperNet, tmp_path: Path) -> None:
        data = tiny_data.splits()
        config = finetuning.FinetuneConfig(epochs=0, batch_size=16, calibration=CALIBRATION, accept_chance=True)
        result = finetuning.finetune(net, data, config, tmp_path)
        assert not placeholders(result.net.graph)
        subnet = result.net.largest()
        x = torch.randn(2, 3, 32, 32)
        with torch.no_grad():
            before, after = net.build(net.largest())(x), result.net.build(subnet)(x)
        assert after.shape == before.shape
        assert result.metrics["largest_validation_accuracy"] >= 0


def test_old_torch_numbers_folded_weights() -> None:
    model = folded("resnet")
    for tensor in model.graph.initializer:
        tensor.name = tensor.name.removeprefix("onnx::Conv_")
    for proto in model.graph.node:
        proto.input[:] = [name.removeprefix("onnx::Conv_") for name in proto.input]
    assert count(autotailor.compile(model)) == count(autotailor.compile(networks.make("resnet"), resolution=32))
    model.producer_name = "someone"
    assert count(autotailor.compile(model)) == 0
