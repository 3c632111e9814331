"""Normalised ONNX -> Graph (paper, section 4.1.3, step 1: operator parsing)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from autotailor.ir import operators as _registered  # noqa: F401  (registers the rules)
from autotailor.ir.canonical import canonical
from autotailor.ir.errors import GraphError
from autotailor.ir.feature import Shape, freeze_attributes
from autotailor.ir.graph import Graph, Node
from autotailor.ir.operator import OperatorRule, rules

Array = npt.NDArray[Any]


def parse(model: onnx.ModelProto, name: str) -> Graph:
    """Reads a normalised model into a graph.

    Vectors (gains, shifts, statistics, biases) that several nodes share are copied for each, because deduplication
    by value ties what has nothing to do with each other; shared matrices stay tied.

    Raises:
        GraphError: control flow, custom domains, or an output that is no row of logits.
    """
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    uses = Counter(name for proto in model.graph.node for name in proto.input if name in constants)
    weights: dict[str, Array] = {}
    nodes = tuple(_node(proto, i, constants, uses, weights) for i, proto in enumerate(model.graph.node))
    graph = Graph(
        name=name,
        nodes=nodes,
        input=model.graph.input[0].name,
        output=model.graph.output[0].name,
        shapes=_shapes(model),
        weights=weights,
    )
    if len(graph.shapes[graph.output]) != 2:
        raise GraphError(
            f"graph {name}: a classifier returns logits [batch, classes], not {list(graph.shapes[graph.output])}"
        )
    return canonical(graph)


def _node(
    proto: onnx.NodeProto,
    position: int,
    constants: dict[str, Array],
    uses: Counter[str],
    weights: dict[str, Array],
) -> Node:
    label = proto.name or f"{proto.op_type}_{position}"
    if proto.domain not in ("", "ai.onnx"):
        raise GraphError(
            f"node {label}: operator {proto.domain}.{proto.op_type} is of a custom domain; export without it"
        )
    attributes = {a.name: _attribute(label, a) for a in proto.attribute}
    rule = rules.find(proto.op_type) or OperatorRule()
    inputs = list(proto.input)
    for slot, attribute in rule.constant_inputs.items():
        if slot < len(inputs) and inputs[slot] in constants and constants[inputs[slot]].ndim <= 1:
            value = constants[inputs[slot]]
            if value.size or value.dtype.kind == "i":  # an empty array of floats stands for an absent input (Resize)
                attributes[attribute] = value.item() if value.ndim == 0 else tuple(value.tolist())
            inputs[slot] = ""
    while inputs and not inputs[-1]:
        inputs.pop()
    for slot, name in enumerate(inputs):
        if name in constants:
            inputs[slot] = _own_weight(name, constants[name], uses[name], f"{label}.{slot}", weights)
    return Node(label, proto.op_type, tuple(inputs), tuple(proto.output), freeze_attributes(attributes))


def _own_weight(name: str, value: Array, uses: int, copy_name: str, weights: dict[str, Array]) -> str:
    """Name under which a node reads a constant; shared vectors get a copy of their own."""
    if uses > 1 and value.ndim <= 1:
        name = copy_name
    weights[name] = np.array(value)
    return name


def _attribute(node: str, attribute: onnx.AttributeProto) -> Any:
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (onnx.GraphProto, onnx.TensorProto)):
        raise GraphError(
            f"node {node}: attribute {attribute.name} holds a {type(value).__name__}, which is not supported"
        )
    return tuple(value) if hasattr(value, "__iter__") and not isinstance(value, str) else value


def _shapes(model: onnx.ModelProto) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {}
    for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        shapes[value.name] = tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
    missing = [name for proto in model.graph.node for name in proto.output if name and name not in shapes]
    if missing:
        raise GraphError(f"graph {model.graph.name}: no shape could be inferred for {missing[0]}")
    return shapes
