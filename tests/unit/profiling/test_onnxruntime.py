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
from autotailor.ir.graph import Graph
from autotailor.profiling import DeviceConfig, open_runtime
from autotailor.profiling.runtimes import onnxruntime_runner
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.feature_nodes import feature_nodes
from features import FEATURES

DEVICE = DeviceConfig.from_section({"name": "test", "runtime": "onnxruntime"})
RUNTIME = open_runtime(DEVICE)

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
