"""Which operators ONNX Runtime runs in its packed layout NCHWc, where blocks of c channels lie side by side.

ONNX Runtime's layout pass (``NchwcTransformer``) packs convolutions and poolings of images, on processors whose kernels
use blocks (x86-64: 8 channels, 16 with AVX-512). A dense convolution with fewer input channels than a block reads the
plain layout.
"""

import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from autotailor.ir.execution.onnx_writer import IR_VERSION, OPSET
from autotailor.ir.feature import OperatorFeature

ALIGNMENT = 4
"""Convolutions whose channels are no multiple of this number stay plain; poolings need whole blocks."""
POOLINGS = frozenset({"MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"})


@cache
def block_size() -> int:
    """Channels of a block on this machine, 1 where there is no packed layout.

    Optimizing a small convolution shows the number.
    """
    weight = numpy_helper.from_array(np.ones((1, 3, 1, 1), dtype=np.float32), "w")
    image, result = (helper.make_tensor_value_info(n, TensorProto.FLOAT, (1, c, 4, 4)) for n, c in (("x", 3), ("y", 1)))
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"])], "probe", [image], [result], [weight])
    model = helper.make_model(graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)])
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.optimized_model_filepath = str(Path(folder) / "optimized.onnx")
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        optimized = onnx.load(options.optimized_model_filepath)
    return int(optimized.graph.initializer[0].dims[0])


def writes_packed(feature: OperatorFeature) -> bool:
    """Whether an operator writes its output in the packed layout."""
    if block_size() == 1 or len(feature.outputs[0]) != 4:
        return False
    if feature.kind in POOLINGS:
        return feature.inputs[0][1] % block_size() == 0
    return feature.kind == "Conv" and _is_packed(feature)


def reads_packed(feature: OperatorFeature) -> bool:
    """Whether an operator reads its first input in the packed layout."""
    if feature.kind == "Conv" and feature.attribute("group", 1) == 1 and feature.weights[0][1] < block_size():
        return False
    return writes_packed(feature)


def _is_packed(feature: OperatorFeature) -> bool:
    """Whether the layout pass packs a convolution."""
    group, block = feature.attribute("group", 1), block_size()
    outputs, inputs = feature.weights[0][:2]
    if group == 1:
        return inputs < block or inputs % ALIGNMENT == 0
    depthwise = inputs == 1 and outputs == group
    aligned = inputs % block == 0 and (outputs // group) % block == 0
    return outputs % ALIGNMENT == 0 and (depthwise or aligned)
