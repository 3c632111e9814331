"""The final activation: found behind views, left out of training, there in everything that leaves the house."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper
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
from reference import model_of, run

node = helper.make_node
rng = np.random.default_rng(0)
CONSTANTS = {
    "w": rng.standard_normal((4, 3, 3, 3)).astype(np.float32), "fc": rng.standard_normal((5, 4)).astype(np.float32),
    "v": rng.standard_normal((5, 4, 1, 1)).astype(np.float32), "row": np.array([1, 5]), "map": np.array([1, 5, 1, 1]),
    "axes": np.array([2, 3]), "one": np.array([1]),
}  # fmt: skip
FEATURES = (node("Conv", ["x", "w"], ["c"]), node("GlobalAveragePool", ["c"], ["p"]))
LINEAR = (*FEATURES, node("Flatten", ["p"], ["f"]), node("Gemm", ["f", "fc"], ["z"], transB=1))
MAPS = (*FEATURES, node("Conv", ["p", "v"], ["z"]))
ENDS = {
    "softmax": (LINEAR, [node("Softmax", ["z"], ["y"])], "Softmax"),
    "axis 1": (LINEAR, [node("Softmax", ["z"], ["y"], axis=1)], "Softmax"),
    "log softmax": (LINEAR, [node("LogSoftmax", ["z"], ["y"])], "LogSoftmax"),
    "log of softmax": (LINEAR, [node("Softmax", ["z"], ["s"]), node("Log", ["s"], ["y"])], "LogSoftmax"),
    "sigmoid": (LINEAR, [node("Sigmoid", ["z"], ["y"])], "Sigmoid"),
    "identity": (LINEAR, [node("Softmax", ["z"], ["s"]), node("Identity", ["s"], ["y"])], "Softmax"),
    "cast": (LINEAR, [node("Softmax", ["z"], ["s"]), node("Cast", ["s"], ["y"], to=TensorProto.FLOAT)], "Softmax"),
    "maps": (MAPS, [node("Softmax", ["z"], ["s"], axis=1), node("Flatten", ["s"], ["y"])], "Softmax"),
    "reshaped": (MAPS, [node("Sigmoid", ["z"], ["s"]), node("Reshape", ["s", "row"], ["y"])], "Sigmoid"),
    "squeezed": (MAPS, [node("Softmax", ["z"], ["s"], axis=1), node("Squeeze", ["s", "axes"], ["y"])], "Softmax"),
    "output as a map": (MAPS, [node("Softmax", ["z"], ["y"], axis=1)], "Softmax"),
    "logits": (LINEAR, [node("Identity", ["z"], ["y"])], ""),
    "gate": (LINEAR, [node("Sigmoid", ["z"], ["s"]), node("Mul", ["z", "s"], ["y"])], ""),
    "softmax inside": (LINEAR, [node("Softmax", ["z"], ["s"]), node("Add", ["s", "z"], ["y"])], ""),
    "log of sigmoid": (LINEAR, [node("Sigmoid", ["z"], ["s"]), node("Log", ["s"], ["y"])], ""),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("opset", [11, 20])
def test_the_final_activation_is_set_aside_for_training_only(name: str, opset: int) -> None:
    body, end, activation = ENDS[name]
    if opset == 11:
        if name == "squeezed":
            end = [end[0], node("Squeeze", ["s"], ["y"], axes=[2, 3])]
        end = [node(n.op_type, n.input, n.output, axis=1) if "Softmax" in n.op_type else n for n in end]
    model = model_of([*body, *end], CONSTANTS, opset)
    net = autotailor.compile(model)
    assert net.head.activation == activation
    assert describe(net)["final_activation"] == (activation or None)
    image = rng.standard_normal((1, 3, 8, 8)).astype(np.float32)
    expected = run(model, image).reshape(1, 5)
    before = onnx.ModelProto()
    before.CopyFrom(model)
    before.graph.output[0].CopyFrom(helper.make_tensor_value_info("z", TensorProto.FLOAT, None))
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
    spelled_out = [
        *LINEAR, node("Exp", ["z"], ["e"]), node("ReduceSum", ["e", "one"], ["s"]), node("Div", ["e", "s"], ["y"])
    ]  # fmt: skip
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
        program = torch.export.load(io.BytesIO((tmp_path / "model.pt").read_bytes())).module()
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
