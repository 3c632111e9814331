"""Layers that are written for operators compute what onnxruntime computes for the same operators, number by number."""

from pathlib import Path

import ncnn
import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from autotailor.ir.feature import OperatorFeature
from autotailor.profiling import ProfilingError
from autotailor.profiling.runtimes.ncnn.layers import fragment, ncnn_shape
from autotailor.profiling.runtimes.ncnn.param import operator_lines, param_text
from autotailor.profiling.runtimes.onnxruntime.replicas import Model
from ncnn_features import CASES, IMAGE, LINEAR, TOKENS, feature, pads, pooled, resized

Array = npt.NDArray[np.float32]


def drawn(shapes: tuple[tuple[int, ...], ...], seed: int) -> list[Array]:
    """Positive numbers, so that roots and logarithms exist."""
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.2, 2.0, shape).astype(np.float32) for shape in shapes]


def expected(operator: OperatorFeature, inputs: list[Array], weights: list[Array]) -> Array:
    """What onnxruntime computes."""
    model = Model()
    for i, shape in enumerate(operator.inputs):
        model.reads(f"in{i}", shape)
    made = model.computes(operator, [f"in{i}" for i in range(len(inputs))], "c")
    model.returns(made.output, operator.outputs[0])
    proto = onnx.parser.parse_model(model.text())
    proto.graph.initializer.extend(
        numpy_helper.from_array(value, name) for name, value in zip(made.weights, weights, strict=True)
    )
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {f"in{i}": value for i, value in enumerate(inputs)})[0]


def computed(operator: OperatorFeature, inputs: list[Array], weights: list[Array], folder: Path) -> Array:
    """What the written layers compute with the same weights."""
    reads = [f"in{i}" for i in range(len(inputs))]
    lines = [f"Input {name} 0 1 {name}" for name in reads]
    param = param_text(lines + operator_lines(fragment(operator), "op", reads, ["out"]))
    (folder / "weights.bin").write_bytes(b"".join(value.tobytes() for value in weights))
    net = ncnn.Net()
    assert net.load_param_mem(param) == 0
    assert net.load_model(str(folder / "weights.bin")) == 0
    extractor = net.create_extractor()
    for name, value in zip(reads, inputs, strict=True):
        extractor.input(name, ncnn.Mat(value.reshape(ncnn_shape(value.shape))).clone())
    code, result = extractor.extract("out")
    assert code == 0
    return np.array(result)


@pytest.mark.parametrize("name", CASES)
def test_written_layers_compute_what_onnxruntime_computes(name: str, tmp_path: Path) -> None:
    operator = CASES[name]
    inputs, weights = drawn(operator.inputs, 0), drawn(operator.weights, 1)
    found = computed(operator, inputs, weights, tmp_path)
    wanted = expected(operator, inputs, weights)
    if operator.kind != "GlobalMaxPool":  # ncnn's is a vector
        assert found.shape == ncnn_shape(operator.outputs[0])
    np.testing.assert_allclose(found.ravel(), wanted.ravel(), rtol=1e-4, atol=1e-5)


REFUSED = {
    "channels": (pads(0, 1, 0, 0, 0, 0, 0, 0), "it can pad the last two axes"),
    "negative": (pads(0, 0, -1, 0, 0, 0, 0, 0), "it can pad the last two axes"),
    "steps": (feature("Slice", IMAGE, (1, 8, 3, 7), starts=(0,), ends=(6,), axes=(2,), steps=(2,)), "every n-th"),
    "batch": (feature("ReduceSum", IMAGE, (1, 8, 6, 7), axes=(0,), keepdims=1), "reduce the batch"),
    "coordinates": (resized(9, 5, **LINEAR, coordinate_transformation_mode="asymmetric"), "at asymmetric coordinates"),
    "vectors": (feature("InstanceNormalization", TOKENS, TOKENS, (5,), (5,), epsilon=1e-5), "channels of images"),
    "one pixel": (resized(1, 1, **LINEAR, coordinate_transformation_mode="pytorch_half_pixel"), "cannot resize"),
    "all tokens": (feature("LayerNormalization", TOKENS, TOKENS, (5, 8), (5, 8), axis=1), "all axes"),
    "all of an image": (feature("LayerNormalization", IMAGE, IMAGE, (8, 6, 7), (8, 6, 7), axis=-3), "all axes"),
    "pads at one end": (pooled("MaxPool", 4, 4, pads=(0, 0, 1, 1), ceil_mode=1), "equal pads at both ends"),
    "pads at two corners": (pooled("AveragePool", 3, 4, pads=(1, 0, 0, 1)), "equal pads at both ends"),
    "dilated": (pooled("MaxPool", 5, 6, strides=(1, 1), pads=(1, 1, 1, 1), dilations=(3, 3)), "no dilation"),
    "a window behind the image": (pooled("MaxPool", 4, 4, pads=(1, 1, 1, 1), ceil_mode=1), "begin within the image"),
    "a mean beyond the pads": (pooled("AveragePool", 3, 4, ceil_mode=1, count_include_pad=1), "begin within the image"),
    "three operands": (OperatorFeature("Max", (IMAGE, IMAGE, IMAGE), (IMAGE,)), "two operands"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_ncnn_computes_otherwise_is_refused(name: str) -> None:
    operator, reason = REFUSED[name]
    with pytest.raises(ProfilingError, match=reason):
        fragment(operator)
