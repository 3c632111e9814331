"""Compares compiled networks with onnxruntime, which computes the reference from the original file."""

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir as ir
import onnxruntime
import torch

import autotailor
from autotailor.compiler.normalise import normalise
from autotailor.compiler.parser import parse
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.graph import Graph

Array = npt.NDArray[Any]


def run(model: onnx.ModelProto, image: Array) -> Array:
    """The only output of a model, computed by onnxruntime without optimisations."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    result: Array = session.run(None, {session.get_inputs()[0].name: image})[0]
    return result


def run_passed(model: onnx.ModelProto, passed: ir.Model) -> Array:
    """Asserts that a pass has not changed what a model computes of an image; returns that."""
    shape = [dim.dim_value or 1 for dim in model.graph.input[0].type.tensor_type.shape.dim]
    image = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    expected, found = run(model, image), run(ir.to_proto(passed), image)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    return expected


def assert_reads(model: onnx.ModelProto) -> Graph:
    """Reads a model; the graph, run as it is, computes what onnxruntime computes from the original."""
    graph = parse(normalise(ir.from_proto(model)), str(model.graph.name))
    image = np.random.default_rng(0).standard_normal(graph.shapes[graph.input]).astype(np.float32)
    expected = run(model, image)
    with torch.no_grad():
        found = GraphModule(graph).eval()(torch.from_numpy(image)).numpy()
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    return graph


def assert_same(model: onnx.ModelProto, tolerance: float = 1e-4, **options: Any) -> autotailor.SuperNet:
    """Compiles a model; fails unless its largest SubNet, built alone or in the SuperNet, computes the reference."""
    net = autotailor.compile(model, **options)
    shape = (1, *net.input_shape[1:])
    image = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    expected = run(model, image)
    scale = np.abs(expected).max() + 1e-12
    with torch.no_grad():
        built = net.build(net.largest())(torch.from_numpy(image)).numpy()
        elastic = net.module().eval()(torch.from_numpy(image)).numpy()
    for found in (built, elastic):
        assert found.shape == expected.shape
        assert np.abs(found - expected).max() / scale < tolerance
    return net
