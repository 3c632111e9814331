"""Graph to ONNX, at opset 17 or the first later opset that has all operators of the graph.

Attributes that ONNX passes as inputs become inputs again.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from autotailor.ir.feature import Shape
from autotailor.ir.graph import INPUT, OUTPUT, Graph, Node
from autotailor.ir.operators.rule import OperatorRule, rules

OPSET = 17
IR_VERSION = 8
_IR_VERSIONS = {OPSET: IR_VERSION, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12}
_POOLS = frozenset({"MaxPool", "AveragePool"})


def to_onnx(graph: Graph, hollow: bool = False, names: Sequence[str] = (INPUT, OUTPUT)) -> onnx.ModelProto:
    """A checked model with static shapes and one input.

    Args:
        graph: to be written.
        hollow: leave out the values of single-precision weights, which become further inputs: enough for shapes.
        names: of the model's input and outputs; no other tensor of the graph may have one of them. Where there are
            several outputs, and not as many names, the outputs keep the names that they have in the graph.
    """
    image, *returned = names if len(names) == 1 + len(graph.outputs) else (names[0], *graph.outputs)
    rename = {graph.input: image, **dict(zip(graph.outputs, returned, strict=True))}
    left_out = {name: w.shape for name, w in graph.weights.items() if hollow and w.dtype == np.float32}
    initializers = [
        numpy_helper.from_array(np.asarray(w), name) for name, w in graph.weights.items() if name not in left_out
    ]
    nodes: list[onnx.NodeProto] = []
    opset = max([OPSET, *((rules.find(node.kind) or OperatorRule()).opset(node) for node in graph.nodes)])
    for node in unfused(graph.nodes):
        proto, constants = write_node(node, opset)
        proto.input[:] = [rename.get(name, name) for name in proto.input]
        proto.output[:] = [rename.get(name, name) for name in proto.output]
        nodes.append(proto)
        initializers.extend(constants)
    model = helper.make_model(
        helper.make_graph(
            nodes,
            graph.name,
            [_value(image, graph.shapes[graph.input]), *(_value(name, shape) for name, shape in left_out.items())],
            [_value(rename[name], graph.shapes[name]) for name in graph.outputs],
            initializers,
        ),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=_IR_VERSIONS[opset],
        producer_name="autotailor",
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def unfused(nodes: Sequence[Node]) -> list[Node]:
    """The nodes, changed so that ONNX Runtime leaves alone what its optimisation would break.

    ONNX Runtime makes a Pad of zeros the own pads of the pooling that reads it. A MaxPool's own pads are minus
    infinity, and a pooling refuses own pads as large as its kernel. A Pad of the smallest number is left alone.
    """
    pooled = {node.inputs[0] for node in nodes if node.kind in _POOLS}
    return [
        node.with_attributes(value=float(np.finfo(np.float32).tiny))
        if pooled.intersection(node.outputs) and _pads_zeros(node)
        else node
        for node in nodes
    ]


def _pads_zeros(node: Node) -> bool:
    constant = node.kind == "Pad" and not any(node.inputs[1:]) and node.get("mode", "constant") == "constant"
    return constant and not node.get("value", 0.0)


def write_node(node: Node, opset: int = OPSET) -> tuple[onnx.NodeProto, list[TensorProto]]:
    """One ONNX node, and the constants that the node reads."""
    rule = rules.find(node.kind) or OperatorRule()
    attributes = dict(node.values)
    inputs = list(node.inputs)
    constants: list[TensorProto] = []
    if opset > OPSET or node.kind not in rule.attribute_at_17:
        for position, name in sorted(rule.constant_inputs.items()):
            value = attributes.pop(name, None)
            while len(inputs) <= position:
                inputs.append("")
            if value is not None:
                inputs[position] = f"{node.name}.{name}"
                constants.append(numpy_helper.from_array(_constant(value), inputs[position]))
    while inputs and not inputs[-1]:
        inputs.pop()
    return helper.make_node(node.kind, inputs, list(node.outputs), node.name, **attributes), constants


def _constant(value: Any) -> np.ndarray[Any, Any]:
    """Limits and scales are floats, shapes and axes 64-bit integers."""
    array = np.array(value)
    return array.astype(np.float32 if array.dtype.kind == "f" and array.size else np.int64)


def _value(name: str, shape: Shape) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
