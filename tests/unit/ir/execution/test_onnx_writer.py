"""Written models: the opset they need, and what onnxruntime computes of them."""

import numpy as np
import pytest
import torch

from acceptance import checks
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.execution.onnx_writer import OPSET, to_onnx, write_node
from autotailor.ir.feature import freeze_attributes
from autotailor.ir.graph import INPUT, OUTPUT, Graph, Node
from onnx_text import HEAD
from text_graphs import graph_of

X = np.random.default_rng(1).normal(size=(1, 3, 8, 8)).astype(np.float32)
OPERATORS = {
    "ReduceMean <axes = [1]> (c)": 17,
    "Clip (c, low, high)": 17,
    "Mish (c)": 18,
    "Gelu (c)": 20,
}


def graph(operator: str) -> Graph:
    limits = {name: value for name, value in (("low", -0.5), ("high", 0.5)) if name in operator}
    width = 1 if "Reduce" in operator else 4
    return graph_of(f"c = Conv (x, k)  t = {operator}  {HEAD}", opset=20 if "Reduce" not in operator else 17,
                    k=(4, 3, 1, 1), fc=(5, width), **limits)  # fmt: skip


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_opset_is_the_first_that_has_all_operators(operator: str) -> None:
    written = to_onnx(graph(operator))
    assert written.opset_import[0].version == OPERATORS[operator]
    with torch.no_grad():
        expected = GraphModule(graph(operator)).eval()(torch.from_numpy(X)).numpy()
    found = checks.run_onnx(written, X)[OUTPUT]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_hollow_model_has_its_shapes_and_reads_the_weights_that_it_lacks() -> None:
    whole = graph("Mish (c)")
    hollow = to_onnx(whole, hollow=True)
    floats = {name for name, weight in whole.weights.items() if weight.dtype == np.float32}
    assert {value.name for value in hollow.graph.input} == {INPUT, *floats}
    assert {tensor.name for tensor in hollow.graph.initializer} == set(whole.weights) - floats
    assert hollow.ByteSize() < to_onnx(whole).ByteSize()
    assert hollow.graph.node == to_onnx(whole).graph.node


def test_attributes_that_onnx_reads_as_inputs_stand_at_their_positions() -> None:
    node = Node("clip", "Clip", ("x",), ("y",), freeze_attributes({"max": 6.0}))
    written, constants = write_node(node)
    assert list(written.input) == ["x", "", "clip.max"]
    assert [constant.name for constant in constants] == ["clip.max"]
    assert not written.attribute


@pytest.mark.parametrize(("opset", "inputs"), [(OPSET, ["x"]), (18, ["x", "mean.axes"])])
def test_axes_of_a_reduction_became_an_input_with_opset_18(opset: int, inputs: list[str]) -> None:
    node = Node("mean", "ReduceMean", ("x",), ("y",), freeze_attributes({"axes": (2, 3), "keepdims": 1}))
    written, _ = write_node(node, opset)
    assert list(written.input) == inputs
    assert ("axes" in {attribute.name for attribute in written.attribute}) == (opset == OPSET)
