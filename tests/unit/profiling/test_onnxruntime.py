"""ONNX Runtime: its replicas hold what its optimizer makes of operators, and compute them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
import torch

from autotailor.ir.executor import GraphModule
from autotailor.ir.feature import Follower, OperatorFeature, freeze_attributes
from autotailor.ir.graph import Graph
from autotailor.profiling import DeviceConfig, open_runtime
from autotailor.profiling.runtimes import onnxruntime_runner
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.feature_nodes import feature_nodes

DEVICE = DeviceConfig.from_section({"name": "test", "runtime": "onnxruntime"})
RUNTIME = open_runtime(DEVICE)
IMAGE, NARROW, TOKENS = (1, 32, 8, 8), (1, 32, 1, 1), (1, 9, 32)
WINDOW = {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1), "strides": (1, 1), "dilations": (1, 1), "group": 1}


def conv(inputs: int, outputs: int, activation: str = "", **attributes: object) -> OperatorFeature:
    values = {**WINDOW, **attributes}
    weights = ((outputs, inputs // values["group"], *values["kernel_shape"]), (outputs,))
    side = 8 // values["strides"][0]
    followers = (Follower(activation),) if activation else ()
    shapes = ((1, inputs, 8, 8),), ((1, outputs, side, side),)
    return OperatorFeature("Conv", *shapes, weights, freeze_attributes(values), followers)


FEATURES = {
    "stem": conv(3, 16, "Relu", strides=(2, 2)),
    "chained convolution": conv(32, 32, "Relu"),
    "convolution": conv(32, 48, "HardSwish"),
    "narrow convolution": conv(8, 8),
    "convolution without blocks": conv(6, 10, "Sigmoid"),
    "unaligned channels": conv(34, 33),
    "depthwise": conv(32, 32, "Clip", group=32),
    "grouped": conv(32, 64, group=2, kernel_shape=(1, 1), pads=(0, 0, 0, 0)),
    "max pool": OperatorFeature(
        "MaxPool", (IMAGE,), ((1, 32, 4, 4),), (), (("kernel_shape", (2, 2)), ("strides", (2, 2)))
    ),
    "global pool": OperatorFeature("GlobalAveragePool", (IMAGE,), (NARROW,)),
    "mean": OperatorFeature("ReduceMean", (IMAGE,), (NARROW,), (), (("axes", (2, 3)), ("keepdims", 1))),
    "add": OperatorFeature("Add", (IMAGE, IMAGE), (IMAGE,)),
    "gate": OperatorFeature("Mul", (IMAGE, NARROW), (IMAGE,)),
    "gemm": OperatorFeature("Gemm", ((1, 32),), ((1, 10),), ((10, 32), (10,)), (("transB", 1),)),
    "matmul": OperatorFeature("MatMul", (TOKENS,), ((1, 9, 8),), ((32, 8),)),
    "attention": OperatorFeature("MatMul", ((1, 2, 9, 4), (1, 2, 4, 9)), ((1, 2, 9, 9),)),
    "softmax": OperatorFeature("Softmax", (TOKENS,), (TOKENS,), (), (("axis", -1),)),
    "layer norm": OperatorFeature("LayerNormalization", (TOKENS,), (TOKENS,), ((32,), (32,)), (("axis", -1),)),
    "batch norm": OperatorFeature("BatchNormalization", (IMAGE,), (IMAGE,), ((32,),) * 4),
    "relu": OperatorFeature("Relu", (IMAGE,), (IMAGE,)),
    "clip": OperatorFeature("Clip", (IMAGE,), (IMAGE,), (), (("max", 6.0), ("min", 0.0))),
    "transpose": OperatorFeature("Transpose", (IMAGE,), ((1, 8, 8, 32),), (), (("perm", (0, 2, 3, 1)),)),
    "reshape": OperatorFeature("Reshape", (IMAGE,), ((1, 32, 64),)),
    "split": OperatorFeature("Split", (TOKENS,), ((1, 9, 8), (1, 9, 24)), (), (("axis", 2),)),
    "concat": OperatorFeature("Concat", (IMAGE, IMAGE), ((1, 64, 8, 8),), (), (("axis", 1),)),
    "slice": OperatorFeature("Slice", (TOKENS,), ((1, 4, 32),), (), (("axes", (1,)), ("ends", (4,)), ("starts", (0,)))),
}
UNPACKED = "convolution without blocks"
"""Its output has no whole quarter of a block: ONNX Runtime puts it back into the plain layout, whatever reads it."""


def optimized(program: Program, output: str, path: Path) -> Counter[str]:
    """Kinds of the nodes that a session of a replica network runs."""
    options = onnxruntime_runner.session_options(RUNTIME.settings())
    options.optimized_model_filepath = str(path)
    model = onnxruntime_runner.read_model(program.param or "", output)
    onnxruntime_runner.open_session(model.SerializeToString(), options, onnxruntime_runner.KEEP)
    return Counter(node.op_type for node in onnx.load(path).graph.node)


@pytest.mark.parametrize("name", FEATURES)
def test_every_copy_is_one_kernel_and_only_copies_are_added(name: str, tmp_path: Path) -> None:
    feature = FEATURES[name]
    program = RUNTIME.replicas(feature)
    short, long = (optimized(program, output, tmp_path / "model.onnx") for output in (program.short, program.long))
    added = long - short
    copies = program.copies[1] - program.copies[0]
    assert added.total() == copies * (1 + program.sink + (name == UNPACKED))
    assert added[feature.kind] >= copies
    assert set(added) <= {feature.kind, *(("Conv", "Size") if program.sink else ()), "ReorderOutput"}


@pytest.mark.parametrize("name", FEATURES)
def test_a_copy_computes_its_operator(name: str) -> None:
    feature = FEATURES[name]
    model = onnx.parser.parse_model(RUNTIME.replicas(feature).param)
    made = feature_nodes(feature, [f"in{i}" for i in range(len(feature.inputs))], "c1")
    model.graph.output.append(onnx.helper.make_tensor_value_info(made.output, onnx.TensorProto.FLOAT, None))
    model = onnxruntime_runner.read_model(onnx.printer.to_text(model), made.output)
    rng = np.random.default_rng(1)
    weights = {w.name: onnx.numpy_helper.to_array(w) for w in model.graph.initializer if w.name in made.weights}
    assert {n: w.shape for n, w in weights.items()} == made.weights
    images = {f"in{i}": rng.random(shape, dtype=np.float32) for i, shape in enumerate(feature.inputs)}
    session = onnxruntime_runner.open_session(
        model.SerializeToString(), onnxruntime_runner.session_options(RUNTIME.settings())
    )
    others = {name: image for name, image in images.items() if name != "in0"}
    shapes = {name: image.shape for name, image in images.items()}
    graph = Graph("one", made.nodes, "in0", made.output, shapes, weights | others)
    expected = GraphModule(graph).eval()(torch.from_numpy(images["in0"])).detach().numpy()
    found = session.run(None, images)[0]
    assert found.shape == feature.outputs[0]
    assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()
