"""Every form in which a file may state a network: opsets, exporters, names, constants, types."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import autotailor
import networks
from autotailor.compiler.normalise import normalise
from autotailor.compiler.parser import parse
from autotailor.ir.errors import GraphError
from reference import Array, assert_same, model_of, run

node = helper.make_node
rng = np.random.default_rng(0)


def weights(*shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def classify(
    *nodes: onnx.NodeProto, channels: int = 4, **extra: Array
) -> tuple[list[onnx.NodeProto], dict[str, Array]]:
    """Some nodes from ``x`` to ``t`` [1, channels, h, w], and a classifier behind them."""
    head = [
        node("GlobalAveragePool", ["t"], ["p"]),
        node("Flatten", ["p"], ["f"]),
        node("Gemm", ["f", "fc"], ["y"], transB=1),
    ]
    return [*nodes, *head], {"fc": weights(5, channels), **extra}


def exported(network: torch.nn.Module, opset: int, dynamo: bool = False, **options: Any) -> onnx.ModelProto:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            network, (torch.zeros(1, 3, 32, 32),), None if dynamo else buffer, dynamo=dynamo, opset_version=opset,
            verbose=False, **options,
        )  # fmt: skip
    return program.model_proto if dynamo else onnx.load_from_string(buffer.getvalue())


@pytest.mark.parametrize("name", sorted(networks.NETWORKS))
@pytest.mark.parametrize("opset", [11, 20])
def test_the_classic_exporter_at_every_opset(name: str, opset: int) -> None:
    model = exported(networks.make(name), opset, do_constant_folding=False)
    net = assert_same(model, space=networks.SPACES[name])
    assert not net.static_parts
    plain = autotailor.compile(networks.make(name), networks.SPACES[name], resolution=32)
    assert net.space == plain.space
    kinds, plain_kinds = ([n.kind for n in each.graph.nodes] for each in (net, plain))
    if name != "transformer":  # whose LayerNormalization and Gelu are decomposed at some opsets
        assert kinds == plain_kinds


def test_the_dynamo_exporter() -> None:
    name = "mobilenet"
    net = assert_same(exported(networks.make(name), 20, dynamo=True, optimize=False), space=networks.SPACES[name])
    plain = autotailor.compile(networks.make(name), networks.SPACES[name], resolution=32)
    assert net.space == plain.space


def test_a_symbolic_batch_axis_and_image_size() -> None:
    model = exported(
        networks.make("mobilenet"), 17, dynamic_axes={"x": {0: "n", 2: "h", 3: "w"}}, input_names=["x"]
    )  # fmt: skip
    with pytest.raises(GraphError, match="dynamic axes"):
        autotailor.compile(model)
    net = assert_same(model, resolution=48)
    assert net.input_shape == (1, 3, 48, 48)


def test_a_file_of_a_fixed_size_keeps_it() -> None:
    with pytest.raises(GraphError, match="fixed to images of shape"):
        autotailor.compile(exported(networks.make("mobilenet"), 17), resolution=64)


@pytest.mark.parametrize("opset", [11, 12, 13, 15, 17, 18, 20, 22])
def test_operators_that_changed_between_opsets_mean_the_same(opset: int) -> None:
    axes_as_input = opset >= 13
    squeeze = node("Squeeze", ["p", "axes"], ["s"]) if axes_as_input else node("Squeeze", ["p"], ["s"], axes=[2, 3])
    mean = node("ReduceMean", ["d", "axes"], ["p"]) if opset >= 18 else node("ReduceMean", ["d"], ["p"], axes=[2, 3])
    drop = node("Dropout", ["c"], ["d"], ratio=0.3) if opset < 12 else node("Dropout", ["c", "ratio"], ["d"])
    nodes = [
        node("Conv", ["x", "w"], ["a"], auto_pad="SAME_UPPER", strides=[2, 2]),
        node("Clip", ["a", "low", "high"], ["c"]),
        drop, mean, squeeze,
        node("Gemm", ["s", "fc"], ["z"]),
        node("Softmax", ["z"], ["y"], axis=1),
    ]  # fmt: skip
    constants = {
        "w": weights(6, 3, 3, 3), "low": np.float32(-1), "high": np.float32(1), "fc": weights(6, 4),
        "ratio": np.float32(0.3), "axes": np.array([2, 3]),
    }  # fmt: skip
    net = assert_same(model_of(nodes, {k: np.asarray(v) for k, v in constants.items()}, opset))
    assert [n.kind for n in net.graph.nodes] == ["Conv", "Clip", "ReduceMean", "Squeeze", "Gemm", "Softmax"]


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("size", [8, 9])
@pytest.mark.parametrize("operator", ["Conv", "MaxPool", "AveragePool"])
def test_auto_pad_becomes_pads(mode: str, size: int, operator: str) -> None:
    attributes: dict[str, Any] = {"auto_pad": mode, "strides": [2, 2]}
    if operator != "Conv":
        attributes["kernel_shape"] = [3, 3]
    if operator == "AveragePool":
        attributes["count_include_pad"] = 1
    inputs = ["x", "w"] if operator == "Conv" else ["x"]
    channels = 4 if operator == "Conv" else 3
    nodes, constants = classify(node(operator, inputs, ["t"], **attributes), channels=channels)
    if operator == "Conv":
        constants["w"] = weights(4, 3, 3, 3)
    net = assert_same(model_of(nodes, constants, shape=(1, 3, size, size)))
    assert net.graph.nodes[0].get("auto_pad") is None


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("opset", [9, 10])
def test_old_resizing_counts_pixels_from_the_corner(mode: str, opset: int) -> None:
    kind = "Upsample" if opset == 9 else "Resize"
    nodes = [
        node(kind, ["x", "scales"], ["r"], mode=mode),
        node("Flatten", ["r"], ["f"]),
        node("Gemm", ["f", "fc", "b"], ["y"]),
    ]
    constants = {"b": weights(5), "scales": np.array([1, 1, 1.5, 1.5], np.float32), "fc": weights(3 * 12 * 12, 5)}
    model = model_of(nodes, constants, opset)
    net = autotailor.compile(model)
    assert net.graph.nodes[0].get("coordinate_transformation_mode") == "asymmetric"
    del model.opset_import[:]
    model.opset_import.extend([helper.make_opsetid("", 20)])
    model.graph.node[0].CopyFrom(
        node("Resize", ["x", "", "scales"], ["r"], mode=mode, nearest_mode="floor",
             coordinate_transformation_mode="asymmetric")
    )  # fmt: skip
    image = weights(1, 3, 8, 8)
    old = model_of(nodes, constants, opset)
    np.testing.assert_allclose(run(model, image), run(old, image), rtol=1e-4, atol=1e-5)


def test_weights_that_pass_through_operators_are_folded() -> None:
    nodes, constants = classify(
        node("Transpose", ["w_hwio"], ["w_t"], perm=[3, 2, 0, 1]),
        node("Identity", ["w_t"], ["w"]),
        node("Constant", [], ["shape"], value=numpy_helper.from_array(np.array([4]))),
        node("Reshape", ["b_matrix", "shape"], ["b64"]),
        node("Cast", ["b64"], ["b"], to=TensorProto.FLOAT),
        node("Split", ["gains"], ["g1", "g2"], num_outputs=2),
        node("Unsqueeze", ["g2", "axes"], ["gain"]),
        node("Conv", ["x", "w", "b"], ["c"]),
        node("Mul", ["c", "gain"], ["t"]),
        w_hwio=weights(3, 3, 3, 4),
        b_matrix=weights(2, 2).astype(np.float64),
        gains=weights(8),
        axes=np.array([0, 2, 3]),
    )
    net = assert_same(model_of(nodes, constants))
    assert [n.kind for n in net.graph.nodes] == ["Conv", "Mul", "GlobalAveragePool", "Flatten", "Gemm"]


def test_shape_arithmetic_folds_once_the_batch_is_one() -> None:
    nodes = [
        node("Conv", ["x", "w"], ["c"]),
        node("Shape", ["c"], ["s"]),
        node("Gather", ["s", "zero"], ["n"], axis=0),
        node("Unsqueeze", ["n", "zero_axis"], ["n1"]),
        node("Concat", ["n1", "minus_one"], ["target"], axis=0),
        node("Reshape", ["c", "target"], ["r"]),
        node("Gemm", ["r", "fc"], ["y"]),
    ]
    constants = {
        "w": weights(4, 3, 3, 3), "zero": np.array(0), "zero_axis": np.array([0]), "minus_one": np.array([-1]),
        "fc": weights(4 * 36, 5),
    }  # fmt: skip
    net = assert_same(model_of(nodes, constants, shape=("n", 3, 8, 8)))
    assert [n.kind for n in net.graph.nodes] == ["Conv", "Reshape", "Gemm"]


def test_names_of_other_frameworks() -> None:
    """Slashes, colons, no node names or the same one twice, tensors called input and output, weights as inputs."""
    nodes, constants = classify(
        node("Conv", ["x", "output"], ["model/conv:0"]),
        node("Relu", ["model/conv:0"], ["input"]),
        node("Conv", ["input", "model/w:0"], ["t"]),
        **{"output": weights(4, 3, 3, 3), "model/w:0": weights(4, 4, 1, 1)},
    )
    model = model_of(nodes, constants)
    model.graph.input.append(helper.make_tensor_value_info("output", TensorProto.FLOAT, (4, 3, 3, 3)))
    net = assert_same(model)
    for proto in model.graph.node[:2]:
        proto.name = "block/conv"  # onnxruntime refuses what ONNX allows
    again = autotailor.compile(model)
    assert len({n.name for n in again.graph.nodes}) == len(again.graph.nodes)
    assert [n.outputs for n in again.graph.nodes] == [n.outputs for n in net.graph.nodes]


def test_exported_subnets_of_such_names_load(tmp_path: Path) -> None:
    nodes, constants = classify(
        node("Conv", ["x", "output"], ["input"]), node("Relu", ["input"], ["t"]), output=weights(4, 3, 3, 3)
    )
    net = autotailor.compile(model_of(nodes, constants))
    net.export_onnx(net.largest(), tmp_path / "m.onnx")
    image = weights(1, 3, 8, 8)
    np.testing.assert_allclose(
        run(onnx.load(tmp_path / "m.onnx"), image), run(model_of(nodes, constants), image), rtol=1e-4, atol=1e-5
    )


def test_weights_in_files_of_their_own(tmp_path: Path) -> None:
    model = exported(networks.make("resnet"), 17, do_constant_folding=False)
    plain = autotailor.compile(model)
    onnx.save(model, str(tmp_path / "m.onnx"), save_as_external_data=True, size_threshold=100, location="m.data")
    net = autotailor.compile(tmp_path / "m.onnx")
    assert all(np.array_equal(net.graph.weights[n], w) for n, w in plain.graph.weights.items())
    (tmp_path / "m.data").write_bytes((tmp_path / "m.data").read_bytes()[:1000])
    with pytest.raises(GraphError, match=r"m\.onnx"):
        autotailor.compile(tmp_path / "m.onnx")
    (tmp_path / "m.data").unlink()
    with pytest.raises(GraphError, match=r"m\.onnx"):
        autotailor.compile(tmp_path / "m.onnx")


def test_shared_vectors_are_copied_and_matrices_stay_tied() -> None:
    nodes, constants = classify(
        node("Conv", ["x", "w", "b"], ["a"]), node("Conv", ["x", "w", "b"], ["c"]), node("Add", ["a", "c"], ["t"]),
        w=weights(4, 3, 3, 3), b=weights(4),
    )  # fmt: skip
    net = assert_same(model_of(nodes, constants))
    first, second = net.graph.nodes[:2]
    assert first.inputs[1] == second.inputs[1]
    assert first.inputs[2] != second.inputs[2]


def test_functions_are_inlined() -> None:
    function = helper.make_function(
        "local", "ConvRelu", ["a", "w"], ["b"],
        [node("Conv", ["a", "w"], ["c"]), node("Relu", ["c"], ["b"])], [helper.make_opsetid("", 20)],
    )  # fmt: skip
    nodes, constants = classify(
        node("ConvRelu", ["x", "w"], ["h"], domain="local"), node("ConvRelu", ["h", "v"], ["t"], domain="local"),
        w=weights(4, 3, 3, 3), v=weights(4, 4, 1, 1),
    )  # fmt: skip
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("local", 1)]
    net = assert_same(model_of(nodes, constants, functions=[function], opset_imports=imports))
    assert [n.kind for n in net.graph.nodes][:4] == ["Conv", "Relu", "Conv", "Relu"]


def test_branches_on_constants_fold_and_others_are_refused() -> None:
    def branch(name: str, kind: str) -> onnx.GraphProto:
        return helper.make_graph(
            [node(kind, ["c"], [name])], name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)]
        )

    def model(condition: str, *before: onnx.NodeProto) -> onnx.ModelProto:
        nodes, constants = classify(
            node("Conv", ["x", "w"], ["c"]), *before,
            node("If", [condition], ["t"], then_branch=branch("a", "Relu"), else_branch=branch("b", "Sigmoid")),
            w=weights(4, 3, 3, 3), yes=np.array(True), half=np.float32(0.5).reshape(()),
        )  # fmt: skip
        return model_of(nodes, constants)

    net = assert_same(model("yes"))
    assert [n.kind for n in net.graph.nodes][:2] == ["Conv", "Relu"]
    looked = [node("ReduceMax", ["c"], ["m"], keepdims=0), node("Greater", ["m", "half"], ["q"])]
    with pytest.raises(GraphError, match="branches on values of the image"):
        autotailor.compile(model("q", *looked))


@pytest.mark.parametrize(("kind", "number"), [(np.float16, TensorProto.FLOAT16), (np.float64, TensorProto.DOUBLE)])
def test_other_precisions_become_single(kind: type, number: int) -> None:
    nodes, constants = classify(
        node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), node("Cast", ["c"], ["s"], to=TensorProto.FLOAT),
        node("Relu", ["s"], ["r"]), node("Cast", ["r"], ["t"], to=number), w=weights(4, 3, 3, 3),
    )  # fmt: skip
    constants = {name: value.astype(kind) for name, value in constants.items()}
    net = autotailor.compile(model_of(nodes, constants, kind=number))
    assert [n.kind for n in net.graph.nodes][:2] == ["Conv", "Relu"]
    assert {w.dtype for w in net.graph.weights.values()} == {np.dtype(np.float32)}
    nodes[3].attribute[0].i = TensorProto.FLOAT
    single = model_of(nodes, {name: value.astype(np.float32) for name, value in constants.items()})
    image = weights(1, 3, 8, 8)
    with torch.no_grad():
        found = net.build(net.largest())(torch.from_numpy(image)).numpy()
    np.testing.assert_allclose(found, run(single, image), rtol=1e-4, atol=1e-5)


def test_sums_reductions_and_views_have_one_form() -> None:
    nodes = [
        node("Conv", ["x", "w"], ["a"]), node("Conv", ["x", "v"], ["b"]), node("Sum", ["a", "b", "a"], ["s"]),
        node("Max", ["s"], ["m"]), node("Reshape", ["m", "same"], ["r"]),
        node("Split", ["r"], ["left", "right"], axis=1, num_outputs=2),
        node("Concat", ["right", "left"], ["c"], axis=1),
        node("ReduceMean", ["c", "axes"], ["p"], keepdims=1), node("Squeeze", ["p"], ["q"]),
        node("Unsqueeze", ["q", "zero"], ["f"]), node("Gemm", ["f", "fc"], ["y"]),
    ]  # fmt: skip
    constants = {
        "w": weights(4, 3, 3, 3), "v": weights(4, 3, 3, 3), "same": np.array([1, 4, 6, 6]), "axes": np.array([2, 3]),
        "zero": np.array([0]), "fc": weights(4, 5),
    }  # fmt: skip
    graph = parse(normalise(ir.from_proto(model_of(nodes, constants))), "g")
    kinds = [n.kind for n in graph.nodes]
    assert kinds == [
        "Conv", "Conv", "Add", "Add", "Split", "Concat", "ReduceMean", "Squeeze", "Unsqueeze", "Gemm"
    ]  # fmt: skip
    assert graph.shapes[graph.output] == (1, 5)


def test_static_operators_are_read_in_the_form_of_opset_17() -> None:
    nodes = [
        node("Conv", ["x", "w"], ["c"]), node("ReduceL2", ["c", "axes"], ["p"], keepdims=0),
        node("Gemm", ["p", "fc"], ["y"]),
    ]  # fmt: skip
    constants = {"w": weights(4, 3, 3, 3), "axes": np.array([2, 3]), "fc": weights(4, 5)}
    net = assert_same(model_of(nodes, constants))
    assert net.graph.nodes[1].get("axes") == (2, 3)


class Plain(torch.nn.Module):
    """A network without BatchNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = torch.nn.Conv2d(3, 4, 3), torch.nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.conv(x)).mean((2, 3)))


def test_a_module_keeps_its_mode() -> None:
    network = Plain().train()
    net = autotailor.compile(network, resolution=16)
    assert net.input_shape == (1, 3, 16, 16)
    assert network.training


class Gelu(torch.nn.Module):
    """torch.cdist has no symbolic in the classic exporter's opset."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = torch.nn.Conv2d(3, 4, 3), torch.nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.special.expit(self.conv(x)).mean((2, 3)) + torch.ops.aten.alias(x[:, :1, 0, 0]))


def test_what_the_classic_exporter_cannot_trace_is_captured() -> None:
    network = Gelu().eval()
    net = autotailor.compile(network, resolution=16)
    x = torch.randn(1, 3, 16, 16)
    with torch.no_grad():
        assert torch.allclose(net.build(net.largest())(x), network(x), atol=1e-4)
