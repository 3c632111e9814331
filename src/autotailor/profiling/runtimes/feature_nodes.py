"""Turns the feature of a fused operator into the graph nodes that compute the operator.

Example: ``Conv`` 3 -> 8 with a bias and a fused Relu, reading ``in0``, as copy ``c1``::

    c1.0 = Conv(in0, c1.w0, c1.w1)
    c1.1 = Relu(c1.0)
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from autotailor.ir.feature import OPERANDS, OperatorFeature, Shape, freeze_attributes
from autotailor.ir.graph import Node

BOOLEAN = 9
"""ONNX's number of the type of booleans."""
SHAPED_BY = {"Reshape": "shape", "Expand": "shape", "Resize": "sizes"}
"""Kinds to the attribute that holds their output's shape. A feature may lack the attribute, as it has the shape."""


@dataclass(frozen=True)
class FeatureNodes:
    """The nodes that compute one copy of a fused operator.

    Attributes:
        nodes: the producer, then its followers.
        weights: names of the weights to their shapes.
        output: name of the last node's first output.
    """

    nodes: tuple[Node, ...]
    weights: dict[str, Shape]
    output: str


def feature_nodes(feature: OperatorFeature, activations: Sequence[str], name: str) -> FeatureNodes:
    """The nodes of a copy called ``name`` of an operator; the copy reads the tensors ``activations``."""
    weights = {f"{name}.w{i}": shape for i, shape in enumerate(feature.weights)}
    sums = sum(follower.kind == "Add" for follower in feature.followers)
    reads, added = activations[: len(activations) - sums], list(activations[len(activations) - sums :])
    outputs = tuple(f"{name}.0.{i}" if i else f"{name}.0" for i in range(len(feature.outputs)))
    said = dict(feature.attributes) | _shape_attributes(feature)
    operands = _ordered(reads, list(weights), said.pop(OPERANDS, None))
    nodes = _expanded(Node(f"{name}.0", feature.kind, operands, outputs, freeze_attributes(said)), weights)
    for i, follower in enumerate(feature.followers, 1):
        operands = (nodes[-1].outputs[0], *([added.pop(0)] if follower.kind == "Add" else ()))
        nodes.append(Node(f"{name}.{i}", follower.kind, operands, (f"{name}.{i}",), follower.attributes))
    return FeatureNodes(tuple(nodes), weights, nodes[-1].outputs[0])


def _ordered(reads: Sequence[str], weights: Sequence[str], order: str | None) -> tuple[str, ...]:
    """Activations and weights in the order in which the operator reads them."""
    if order is None:
        return (*reads, *weights)
    sources = {"x": iter(reads), "w": iter(weights)}
    return tuple(next(sources[kind]) for kind in order)


def _expanded(node: Node, weights: Collection[str]) -> list[Node]:
    """The node itself; for an operator that ONNX lacks, the nodes that a fusion pattern had replaced by it.

    A constant condition is a cast of a weight, because runners draw weights as numbers; runtimes cast a constant once.
    """
    inner = f"{node.name}.inner"
    if node.kind == "Where" and node.inputs[0] in weights:
        cast = Node(inner, "Cast", node.inputs[:1], (inner,), freeze_attributes({"to": BOOLEAN}))
        return [cast, Node(node.name, "Where", (inner, *node.inputs[1:]), node.outputs)]
    if node.kind == "Swish":
        (x,) = node.inputs
        return [Node(inner, "Sigmoid", (x,), (inner,)), Node(node.name, "Mul", (x, inner), node.outputs)]
    if node.kind == "MatMul" and len(node.inputs) == 3:
        *operands, bias = node.inputs
        return [Node(inner, "MatMul", tuple(operands), (inner,)), Node(node.name, "Add", (inner, bias), node.outputs)]
    return [node]


def _shape_attributes(feature: OperatorFeature) -> dict[str, Any]:
    """Attributes that follow from the shapes of the outputs."""
    if feature.kind == "Split":
        axis = feature.attribute("axis", 0)
        return {"split": tuple(shape[axis] for shape in feature.outputs)}
    return {SHAPED_BY[feature.kind]: feature.outputs[0]} if feature.kind in SHAPED_BY else {}
