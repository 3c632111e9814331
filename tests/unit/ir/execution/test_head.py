"""The final activation: found behind views, left out of training, there in everything that leaves the house."""

import io
import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import TensorProto
from torch import nn

import autotailor
import networks
import tiny_data
from autotailor.accuracy import CalibrationConfig, calibrate
from autotailor.export import export, inherited
from autotailor.finetuning import FinetuneConfig, finetune
from autotailor.ir.description import describe
from autotailor.ir.errors import GraphError
from autotailor.profiling import DeviceConfig, open_runtime
from onnx_text import model_of
from reference import run

rng = np.random.default_rng(0)
CONSTANTS = {
    "w": rng.standard_normal((4, 3, 3, 3)).astype(np.float32), "fc": rng.standard_normal((5, 4)).astype(np.float32),
    "v": rng.standard_normal((5, 4, 1, 1)).astype(np.float32), "row": [1, 5], "axes": [2, 3], "one": [1],
    "hundred": np.array(100, np.float32),
}  # fmt: skip
FEATURES = "c = Conv (x, w)  p = GlobalAveragePool (c)"
LINEAR = f"{FEATURES}  f = Flatten (p)  z = Gemm <transB = 1> (f, fc)"
MAPS = f"{FEATURES}  z = Conv (p, v)"
ENDS = {
    "softmax": (LINEAR, "y = Softmax (z)", "Softmax"),
    "axis 1": (LINEAR, "y = Softmax <axis = 1> (z)", "Softmax"),
    "log softmax": (LINEAR, "y = LogSoftmax (z)", "LogSoftmax"),
    "log of softmax": (LINEAR, "s = Softmax (z)  y = Log (s)", "LogSoftmax"),
    "sigmoid": (LINEAR, "y = Sigmoid (z)", "Sigmoid"),
    "identity": (LINEAR, "s = Softmax (z)  y = Identity (s)", "Softmax"),
    "cast": (LINEAR, f"s = Softmax (z)  y = Cast <to = {TensorProto.FLOAT}> (s)", "Softmax"),
    "maps": (MAPS, "s = Softmax <axis = 1> (z)  y = Flatten (s)", "Softmax"),
    "reshaped": (MAPS, "s = Sigmoid (z)  y = Reshape (s, row)", "Sigmoid"),
    "squeezed": (MAPS, "s = Softmax <axis = 1> (z)  y = Squeeze (s, axes)", "Softmax"),
    "output as a map": (MAPS, "y = Softmax <axis = 1> (z)", "Softmax"),
    "percent": (LINEAR, "s = Softmax (z)  y = Mul (hundred, s)", "Softmax"),
    "share of a share": (LINEAR, "s = Sigmoid (z)  y = Div (s, hundred)", "Sigmoid"),
    "logits": (LINEAR, "y = Identity (z)", ""),
    "scaled logits": (LINEAR, "y = Mul (z, hundred)", ""),
    "over a sigmoid": (LINEAR, "s = Sigmoid (z)  y = Div (hundred, s)", ""),
    "gate": (LINEAR, "s = Sigmoid (z)  y = Mul (z, s)", ""),
    "softmax inside": (LINEAR, "s = Softmax (z)  y = Add (s, z)", ""),
    "log of sigmoid": (LINEAR, "s = Sigmoid (z)  y = Log (s)", ""),
}


def as_at_11(end: str) -> str:
    """Nodes as opset 11 writes them: axes of Squeeze are an attribute, and Softmax needs its axis."""
    end = end.replace("Squeeze (s, axes)", "Squeeze <axes = [2, 3]> (s)")
    return end.replace("Softmax (z)", "Softmax <axis = 1> (z)")


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("opset", [11, 20])
def test_the_final_activation_is_set_aside_for_training_only(name: str, opset: int) -> None:
    body, end, activation = ENDS[name]
    end = as_at_11(end) if opset == 11 else end
    model = model_of(f"{body}  {end}", CONSTANTS, opset=opset)
    net = autotailor.compile(model)
    assert net.head.activation == activation
    assert describe(net)["final_activation"] == (activation or None)
    image = rng.standard_normal((1, 3, 8, 8)).astype(np.float32)
    expected = run(model, image).reshape(1, 5)
    before = model_of(f"{body}  {end}", CONSTANTS, opset=opset, outputs="float[n, classes] z")
    logits = run(before, image).reshape(1, 5) if activation else expected
    x = torch.from_numpy(image)
    with torch.no_grad():
        for found, wanted in (
            (net.module().eval()(x), expected),
            (net.build(net.largest())(x), expected),
            (net.module(logits=True).eval()(x), logits),
            (net.module(logits=True).replica().eval()(x), logits),
            (net.build(net.largest(), logits=True)(x), logits),
        ):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_probabilities_that_come_from_no_softmax_are_refused() -> None:
    spelled_out = f"{LINEAR}  e = Exp (z)  s = ReduceSum (e, one)  y = Div (e, s)"
    with pytest.raises(GraphError, match=r"returns probabilities.*up to its logits"):
        autotailor.compile(model_of(spelled_out, CONSTANTS))


def test_a_softmax_in_attention_stays() -> None:
    net = autotailor.compile(networks.make("transformer"), resolution=32)
    assert net.head.activation == ""
    assert any(node.kind == "Softmax" for node in net.graph.nodes)


def ending_in(*activation: nn.Module) -> autotailor.SuperNet:
    torch.manual_seed(0)
    network = nn.Sequential(networks.TinyResNet(), *activation).eval()
    space = {**networks.SPACES["resnet"], "resolution": [32]}
    return autotailor.compile(network, space, name="ending", resolution=32)


@pytest.fixture(scope="module")
def softmax_net() -> autotailor.SuperNet:
    return ending_in(nn.Softmax(dim=1))


def test_training_is_that_of_the_network_without_its_softmax(softmax_net: autotailor.SuperNet, tmp_path: Path) -> None:
    calibration = CalibrationConfig(images=32, batch_size=16)
    config = FinetuneConfig(epochs=1, batch_size=16, calibration=calibration, subnets=3, accept_chance=True)
    trained = finetune(softmax_net, tiny_data.splits(), config, tmp_path / "softmax")
    plain = finetune(ending_in(), tiny_data.splits(), config, tmp_path / "plain")
    assert trained.history == plain.history
    ours, theirs = trained.net.graph.weights, plain.net.graph.weights
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(ours[mine], theirs[other])
    image = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        rows = trained.net.build(trained.net.smallest())(image)
        logits = plain.net.build(plain.net.smallest())(image)
    torch.testing.assert_close(rows, logits.softmax(1))


def test_every_exported_file_has_its_softmax(softmax_net: autotailor.SuperNet, tmp_path: Path) -> None:
    splits, subnet = tiny_data.splits(), softmax_net.smallest()
    calibration = CalibrationConfig(images=48, batch_size=24)
    statistics = calibrate(softmax_net.module().eval(), subnet, splits, calibration)
    runtime = open_runtime(DeviceConfig.from_section({"name": "test"}))
    assert export(inherited(softmax_net, subnet, statistics), tmp_path, splits.test, runtime).passed
    image = next(iter(splits.test.batches(1)))[0]
    with torch.no_grad():
        logits = softmax_net.build(subnet, statistics, logits=True)(image)
        program = torch.export.load(io.BytesIO((tmp_path / "model.pt2").read_bytes())).module()
        rows = {
            "torch": program(image).numpy(),
            "ncnn": runtime.run(tmp_path, image.numpy()),
            "onnx": onnxruntime.InferenceSession(str(tmp_path / "model.onnx")).run(None, {"input": image.numpy()})[0],
        }
    for name, row in rows.items():
        np.testing.assert_allclose(row, logits.softmax(1), atol=1e-4, err_msg=name)
    reference = json.loads((tmp_path / "verification.json").read_text())["reference"]
    np.testing.assert_allclose(np.sum(reference, axis=1), 1, atol=1e-4)


def test_the_softmax_is_an_operator_of_the_space(softmax_net: autotailor.SuperNet) -> None:
    """What is predicted for a device is what is measured on it."""
    assert "Softmax" in {feature.kind for feature in softmax_net.operators()}
