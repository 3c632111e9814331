"""Broken and strange files: a clear error, or a SuperNet that equals the original; never anything else."""

from __future__ import annotations

import contextlib
import functools
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import autotailor
import networks
from autotailor.ir.description import describe
from autotailor.ir.errors import AutoTailorError, GraphError
from mutations import strange_files
from reference import Array, assert_same, model_of, run

node = helper.make_node
rng = np.random.default_rng(0)
FUZZ = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
IMAGE = rng.standard_normal((1, 3, 16, 16)).astype(np.float32)


def weights(*shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


@functools.cache
def small_file() -> bytes:
    """A file with residual, depthwise and gated blocks, its weights in the front of the bytes as exporters write it."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        *networks.conv_bn(3, 8, 3, 2), torch.nn.ReLU6(), networks.InvertedResidual(8, 16, 8, gate=True),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 3),
    ).eval()  # fmt: skip
    buffer = io.BytesIO()
    torch.onnx.export(
        network, (torch.zeros(1, 3, 16, 16),), buffer, dynamo=False, opset_version=13, do_constant_folding=False
    )
    return buffer.getvalue()


def accept_or_refuse(content: bytes, path: Path) -> None:
    """Compiles a file; what is accepted computes what onnxruntime computes from it."""
    path.write_bytes(content)
    try:
        net = autotailor.compile(path)
    except AutoTailorError:
        return
    try:
        expected = run(onnx.load(path), IMAGE)
    except Exception:  # onnxruntime refuses the file: nothing to compare with
        return
    with torch.no_grad():
        found = net.build(net.largest())(torch.from_numpy(IMAGE)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * float(np.nanmax(np.abs(expected), initial=1.0)))
    net.shapes(net.smallest())


@FUZZ
@given(share=st.floats(0, 1))
def test_truncated_files(share: float, tmp_path_factory: pytest.TempPathFactory) -> None:
    content = small_file()
    accept_or_refuse(content[: int(share * len(content))], tmp_path_factory.getbasetemp() / "cut.onnx")


@FUZZ
@given(flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7)), min_size=1, max_size=4))
def test_flipped_bits(flips: list[tuple[float, int]], tmp_path_factory: pytest.TempPathFactory) -> None:
    content = bytearray(small_file())
    for place, bit in flips:
        content[int(place * len(content))] ^= 1 << bit
    accept_or_refuse(bytes(content), tmp_path_factory.getbasetemp() / "flipped.onnx")


@functools.cache
def skeleton() -> tuple[bytes, tuple[bytes, ...]]:
    """The small file without its weights, and the weights: flips hit what says something."""
    model = onnx.load_from_string(small_file())
    tensors = tuple(tensor.SerializeToString() for tensor in model.graph.initializer)
    del model.graph.initializer[:]
    return model.SerializeToString(), tensors


@settings(FUZZ, max_examples=150)
@given(flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=3))
def test_changed_bytes_of_the_graph(flips: list[tuple[float, int]], tmp_path_factory: pytest.TempPathFactory) -> None:
    graph, tensors = skeleton()
    content = bytearray(graph)
    for place, value in flips:
        content[int(place * len(content))] = value
    try:
        model = onnx.load_from_string(bytes(content))
    except Exception:
        return  # covered by the test above
    for tensor in tensors:
        model.graph.initializer.add().ParseFromString(tensor)
    accept_or_refuse(model.SerializeToString(), tmp_path_factory.getbasetemp() / "changed.onnx")


def compile_or_refuse(content: bytes, path: Path) -> None:
    """Compiles a file and asks for what ``inspect`` prints; only AutoTailorErrors may come of it."""
    path.write_bytes(content)
    with contextlib.suppress(AutoTailorError):
        net = autotailor.compile(path)
        net.shapes(net.smallest())
        net.sample(np.random.default_rng(0))
        json.dumps(describe(net))


@settings(FUZZ, max_examples=100)
@given(content=st.deferred(lambda: strange_files(small_file())))
def test_strange_bytes_are_refused_without_a_traceback(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    compile_or_refuse(content, tmp_path_factory.getbasetemp() / "strange.onnx")


@pytest.mark.sweep
@pytest.mark.timeout(3600)
@settings(FUZZ, max_examples=1000, derandomize=False, print_blob=True)
@given(content=st.deferred(lambda: strange_files(small_file())))
def test_a_thousand_strange_files_are_refused_without_a_traceback(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    compile_or_refuse(content, tmp_path_factory.getbasetemp() / "strange.onnx")


HEAD = (
    node("GlobalAveragePool", ["t"], ["p"]), node("Flatten", ["p"], ["f"]), node("Gemm", ["f", "fc"], ["y"], transB=1)
)  # fmt: skip
STEM = node("Conv", ["x", "w"], ["c"])
FC, W = weights(5, 4), weights(4, 3, 3, 3)


@pytest.mark.parametrize("opset", [1, 5, 6, 24, 99])
def test_opsets_that_are_not_read(opset: int) -> None:
    model = model_of([node("Conv", ["x", "w"], ["t"]), *HEAD], {"w": W, "fc": FC}, opset)
    with pytest.raises(GraphError, match=f"opset {opset}; autotailor reads ONNX opsets 7 to 23"):
        autotailor.compile(model)


@pytest.mark.parametrize(
    "attributes",
    [{"group": 0}, {"strides": [0, 1]}, {"dilations": [1]}, {"pads": [1, 1]}, {"strides": [1, 1, 1]}],
    ids=str,
)
def test_windows_that_no_map_has_are_named(attributes: dict[str, Any]) -> None:
    model = model_of([node("Conv", ["x", "w"], ["t"], name="stem", **attributes), *HEAD], {"w": W, "fc": FC})
    with pytest.raises(GraphError) as refusal:
        autotailor.compile(model)
    assert "error of autotailor" not in str(refusal.value)


def test_what_nobody_foresaw_is_an_error_that_names_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotailor.compiler.compile.parse", lambda *_: {}["key"])
    model = model_of([node("Conv", ["x", "w"], ["t"]), *HEAD], {"w": W, "fc": FC})
    with pytest.raises(GraphError, match=r"graph g: it cannot be compiled \(KeyError: 'key'\).*error of autotailor"):
        autotailor.compile(model)


REFUSED = {
    "cyclic": ([STEM, node("Add", ["c", "r"], ["t"]), node("Relu", ["t"], ["r"]), *HEAD], "valid ONNX"),
    "not sorted": ([*HEAD, node("Conv", ["x", "w"], ["t"])], "valid ONNX"),
    "dangling": ([STEM, node("Add", ["c", "nowhere"], ["t"]), *HEAD], "valid ONNX"),
    "unknown operator": ([STEM, node("Foo", ["c"], ["t"]), *HEAD], "Foo"),
    "custom domain": ([STEM, node("Foo", ["c"], ["t"], domain="my"), *HEAD], "my.Foo is of a custom domain"),
    "map": ([node("Conv", ["x", "w"], ["y"])], "returns logits"),
    "sequence of tokens": ([node("Flatten", ["x"], ["f"], axis=2), node("Unsqueeze", ["f", "one"], ["y"])], "logits"),
    "constant": ([node("Conv", ["w", "w"], ["t"], pads=[1, 1, 1, 1]), node("Relu", ["fc"], ["y"])], "input"),
    "dynamic inside": (
        [STEM, node("NonZero", ["c"], ["z"]), node("Cast", ["z"], ["y"], to=1)], "cannot be inferred"
    ),
    "empty map": ([STEM, node("Slice", ["c", "zero", "zero", "axis"], ["t"]), *HEAD], "is empty"),
    "shrunk away": ([node("Conv", ["x", "w"], ["t"], strides=[1, 1], dilations=[9, 9]), *HEAD], "shapes cannot|empty"),
    "bias without axes": ([node("Conv", ["x", "w", "half"], ["t"]), *HEAD], "half of shape .* does not fit"),
    "does not fit": ([node("Conv", ["x", "v"], ["t"]), *HEAD], "does not fit"),
    "random": ([STEM, node("RandomNormalLike", ["c"], ["n"]), node("Add", ["c", "n"], ["t"]), *HEAD], "RandomNormal"),
    "training": (
        [STEM, node("BatchNormalization", ["c", "v1", "v1", "v1", "v1"], ["t", "m1", "m2"], training_mode=1), *HEAD],
        "training mode",
    ),
    "training dropout": ([STEM, node("Dropout", ["c", "half", "yes"], ["t"]), *HEAD], "Dropout in training mode"),
    "index": ([STEM, node("Flatten", ["c"], ["f"]), node("ArgMax", ["f"], ["y"], axis=1)], "returns indices"),
    "first image": ([STEM, node("GatherND", ["c", "first"], ["t"]), *HEAD], "rest of the batch"),
    "weights from the image": (
        [STEM, node("GlobalAveragePool", ["c"], ["g"]), node("Reshape", ["g", "each"], ["k"]),
         node("Conv", ["c", "k"], ["t"], group=4), *HEAD],
        "one image only",
    ),
    "wrong reshape": ([STEM, node("Reshape", ["c", "seven"], ["y"])], "cannot|infer"),
}  # fmt: skip
CONSTANTS = {
    "w": W, "fc": FC, "one": np.array([0]), "zero": np.array([0]), "axis": np.array([2]), "v": weights(4, 7, 1, 1),
    "half": np.float32(0.5), "yes": np.array(True), "first": np.array([[0]]), "each": np.array([4, 1, 1, 1]),
    "v1": weights(4), "seven": np.array([7, -1]),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_reason(name: str) -> None:
    nodes, message = REFUSED[name]
    model = model_of(nodes, CONSTANTS)
    model.opset_import.append(helper.make_opsetid("my", 1))
    with pytest.raises(AutoTailorError, match=message):
        autotailor.compile(model)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((1, 3, 0, 8), "is empty"), ((1, 3, -1, 8), "is empty"), (("n", "c", 8, 8), "dynamic axes"),
        ((3,), "not a batch"), ((), "not a batch"),
    ],
)  # fmt: skip
def test_strange_input_shapes(shape: tuple[int | str, ...], message: str) -> None:
    model = model_of([node("Conv", ["x", "w"], ["t"]), *HEAD], CONSTANTS, shape=shape)
    with pytest.raises(GraphError, match=message):
        autotailor.compile(model)


def test_inputs_that_are_no_images() -> None:
    nodes = [node("Cast", ["x"], ["i"], to=1), node("Conv", ["i", "w"], ["t"]), *HEAD]
    with pytest.raises(GraphError, match="expected a float tensor"):
        autotailor.compile(model_of(nodes, CONSTANTS, kind=TensorProto.UINT8))
    sequence = helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, None)
    model = model_of([node("SequenceAt", ["x", "zero0"], ["y"])], {"zero0": np.array(0)})
    model.graph.input[0].CopyFrom(sequence)
    with pytest.raises(GraphError, match="expected a float tensor"):
        autotailor.compile(model)


def test_several_inputs_and_outputs() -> None:
    two = model_of([node("Add", ["x", "z"], ["c"]), node("Conv", ["c", "w"], ["t"]), *HEAD], CONSTANTS)
    two.graph.input.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, (1, 3, 8, 8)))
    with pytest.raises(GraphError, match="one input and one output, this one has 2"):
        autotailor.compile(two)
    heads = model_of([node("Conv", ["x", "w"], ["t"]), *HEAD], CONSTANTS)
    heads.graph.output.append(helper.make_tensor_value_info("f", TensorProto.FLOAT, (1, 4)))
    with pytest.raises(GraphError, match="extract_model"):
        autotailor.compile(heads)


def test_outputs_that_nobody_reads_stay_where_onnx_wants_them(tmp_path: Path) -> None:
    net = assert_same(model_of([STEM, node("TopK", ["c", "three"], ["t", "i"], axis=1), *HEAD], {
        "w": W, "fc": weights(5, 3), "three": np.array([3])
    }))  # fmt: skip
    net.export_onnx(net.largest(), tmp_path / "largest.onnx")


def test_a_table_of_indices_is_static() -> None:
    nodes = [STEM, node("Gather", ["c", "table"], ["g"], axis=2), node("ReduceMean", ["g", "axes"], ["t"], keepdims=0)]
    constants = {"w": W, "fc": FC, "table": np.array([[0, 2, -1], [1, 3, 5]]), "axes": np.array([3])}
    net = assert_same(model_of([*nodes, *HEAD], constants))
    assert [part.reason for part in net.static_parts] == ["its indices are computed, or a matrix"]


def test_an_output_may_leave_its_shape_open() -> None:
    model = model_of([node("Conv", ["x", "w"], ["t"]), *HEAD], {"w": W, "fc": FC})
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert_same(model)


def test_dead_code_is_dropped() -> None:
    """Disconnected nodes, unused weights, an input that nothing reads, a fixed batch that nothing depends on."""
    nodes = [
        node("Conv", ["x", "w"], ["t"]), node("Relu", ["t"], ["dead"]), node("Sigmoid", ["fc"], ["island"]), *HEAD
    ]  # fmt: skip
    model = model_of(nodes, {**CONSTANTS, "unused": weights(9, 9)})
    model.graph.input.append(helper.make_tensor_value_info("spare", TensorProto.FLOAT, (2, 2)))
    net = assert_same(model_of(nodes, {**CONSTANTS, "unused": weights(9, 9)}))
    again = autotailor.compile(model)
    for found in (net, again):
        assert [n.kind for n in found.graph.nodes] == ["Conv", "GlobalAveragePool", "Flatten", "Gemm"]
        assert len(found.graph.weights) == 2


def test_a_batch_written_into_the_graph_is_refused() -> None:
    nodes = [node("Conv", ["x", "w"], ["c"]), node("Reshape", ["c", "rows"], ["r"]), node("Gemm", ["r", "m"], ["y"])]
    constants = {"w": W, "rows": np.array([4, 144]), "m": weights(144, 5)}
    model = model_of(nodes, constants, shape=(4, 3, 8, 8))
    assert run(model, weights(4, 3, 8, 8)).shape == (4, 5)
    with pytest.raises(GraphError):
        autotailor.compile(model)


@pytest.mark.parametrize("position", range(4))
def test_weights_of_another_length_than_they_say(position: int) -> None:
    model = onnx.load_from_string(small_file())
    tensor = model.graph.initializer[position]
    tensor.raw_data = tensor.raw_data[:-4]
    with pytest.raises(GraphError):
        autotailor.compile(model)


def test_onnxruntime_agrees_on_the_unbroken_file(tmp_path: Path) -> None:
    accept_or_refuse(small_file(), tmp_path / "good.onnx")
    assert onnxruntime.InferenceSession(str(tmp_path / "good.onnx"))
    assert not autotailor.compile(tmp_path / "good.onnx").static_parts
