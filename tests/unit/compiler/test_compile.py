"""Sources and their errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper

import autotailor
import networks
from autotailor.compiler import read_graph
from autotailor.ir.errors import GraphError


def test_an_onnx_file_compiles_to_the_same_function(tmp_path: Path) -> None:
    net = autotailor.compile(networks.make("mobilenet"), networks.SPACES["mobilenet"], resolution=32)
    net.export_onnx(net.largest(), tmp_path / "model.onnx")
    again = autotailor.compile(tmp_path / "model.onnx", networks.SPACES["mobilenet"])
    x = torch.randn(net.input_shape)
    expected = onnxruntime.InferenceSession(str(tmp_path / "model.onnx")).run(None, {"input": x.numpy()})[0]
    with torch.no_grad():
        np.testing.assert_allclose(again.build(again.largest())(x).numpy(), expected, rtol=1e-4, atol=1e-5)
    assert again.space == net.space
    assert again.name == "model"


def test_a_files_graph_is_read_as_it_is_compiled(tmp_path: Path) -> None:
    net = autotailor.compile(networks.make("resnet"), networks.SPACES["resnet"], resolution=32)
    net.export_onnx(net.largest(), tmp_path / "model.onnx")
    graph = read_graph(tmp_path / "model.onnx")
    assert graph.name == "model"
    assert graph.nodes == autotailor.compile(tmp_path / "model.onnx").graph.nodes


def test_a_dynamic_batch_axis_is_accepted(tmp_path: Path) -> None:
    torch.onnx.export(
        networks.make("resnet"), (torch.randn(2, 3, 32, 32),), str(tmp_path / "m.onnx"), dynamo=False,
        opset_version=17, dynamic_axes={"images": {0: "n"}}, input_names=["images"], do_constant_folding=False,
    )  # fmt: skip
    net = autotailor.compile(tmp_path / "m.onnx")
    assert net.input_shape == (1, 3, 32, 32)
    assert len(net.blocks) == 5


def test_without_a_space_one_is_proposed() -> None:
    net = autotailor.compile(networks.make("resnet"), resolution=32)
    kinds = {v.kind for v in net.space}
    assert kinds == {"resolution", "width", "depth", "expand_ratio"}
    largest, smallest = (net.macs().predict(s.to_array())[0] for s in (net.largest(), net.smallest()))
    assert smallest < largest / 2


def test_factory_and_weights(tmp_path: Path) -> None:
    torch.save(networks.make("resnet").state_dict(), tmp_path / "w.pt")
    net = autotailor.compile("networks:TinyResNet", {}, resolution=32, weights=tmp_path / "w.pt")
    x = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        expected = networks.make("resnet")(x)
        assert torch.allclose(net.build(net.largest())(x), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("missing.onnx", "does not exist"),
        ("timm:resnet50000", "timm has no model"),
        ("nothing_here:make", "cannot be imported"),
        ("networks:missing", "has no attribute"),
        ("networks:relative", "has no attribute"),
        ("networks:conv_bn", "missing"),
        ("resnet50", "expected a path"),
    ],
)
def test_unusable_sources_are_named(source: str, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        autotailor.compile(source)


def test_a_network_made_for_another_resolution_says_for_which() -> None:
    class Fixed(torch.nn.Conv2d):
        default_cfg = {"input_size": (3, 48, 40)}  # as timm's networks have it

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            assert image.shape[-2:] == (48, 40)
            return super().forward(image)

    with pytest.raises(GraphError, match=r"\[1, 3, 32, 32\].*made for 48x40 pixels"):
        autotailor.compile(Fixed(3, 4, 3), resolution=32)


def test_weights_that_do_not_fit_are_named(tmp_path: Path) -> None:
    torch.save({"x": torch.zeros(1)}, tmp_path / "w.pt")
    with pytest.raises(GraphError, match="does not fit"):
        autotailor.compile("networks:TinyResNet", resolution=32, weights=tmp_path / "w.pt")


def test_corrupt_files_are_refused(tmp_path: Path) -> None:
    good = tmp_path / "good.onnx"
    net = autotailor.compile(networks.make("resnet"), resolution=32)
    net.export_onnx(net.smallest(), good)
    content = good.read_bytes()
    bad = tmp_path / "bad.onnx"
    rng = np.random.default_rng(0)
    for cut in [0, 10, len(content) // 3, len(content) - 7]:
        bad.write_bytes(content[:cut])
        with pytest.raises(GraphError, match=r"bad\.onnx"):
            autotailor.compile(bad)
    bad.write_bytes(rng.bytes(1000))
    with pytest.raises(GraphError, match=r"bad\.onnx is no valid ONNX file"):
        autotailor.compile(bad)


def _model(nodes, output_shape, inputs=("x",), input_shape=(1, 3, 8, 8)) -> onnx.ModelProto:
    return helper.make_model(
        helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, input_shape) for name in inputs],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, output_shape)],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (_model([helper.make_node("Relu", ["x"], ["y"])], (1, 3, 8, 8)), "returns logits"),
        (_model([helper.make_node("Add", ["x", "z"], ["y"])], (1, 3, 8, 8), ("x", "z")), "one input and one output"),
        (_model([helper.make_node("Flatten", ["x"], ["y"])], (1, None), input_shape=(1, 3, "h", "w")), "dynamic axes"),
    ],
)
def test_models_that_are_no_classifiers_are_refused(model: onnx.ModelProto, message: str, tmp_path: Path) -> None:
    onnx.save(model, str(tmp_path / "m.onnx"))
    with pytest.raises(GraphError, match=message):
        autotailor.compile(tmp_path / "m.onnx")
