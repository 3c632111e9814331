"""Normalised ONNX -> Graph (paper, section 4.1.3, step 1: operator parsing).

An exporter writes the sizes of one image into attributes, and the graph needs those that hold for every size. Once
dimensions are known, a Reshape leaves the axis of the batch open, a Slice that runs to the end of an axis says so, and
a Split lists its sizes.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir as ir

from autotailor.compiler.passes.signature import batch_remedy
from autotailor.compiler.rewrites.assignments import without_assignments
from autotailor.compiler.rewrites.expansions import without_needless_expansions
from autotailor.compiler.rewrites.global_pools import with_global_pools
from autotailor.compiler.rewrites.pads import without_pads
from autotailor.compiler.rewrites.slices import slices_as_splits
from autotailor.compiler.rewrites.strided_views import without_strided_views
from autotailor.compiler.rewrites.windows import with_axes_of_windows, without_axes_of_one
from autotailor.ir import operators as _registered  # noqa: F401  (registers the rules)
from autotailor.ir.errors import GraphError
from autotailor.ir.feature import Shape, freeze_attributes
from autotailor.ir.graph import INPUT, OUTPUT, Graph, Node
from autotailor.ir.operators.rule import rules
from autotailor.ir.propagation import Propagation, propagate

Array = npt.NDArray[Any]


def parse(model: ir.Model | onnx.ModelProto, name: str) -> Graph:
    """Reads a normalised model into a graph.

    Vectors (gains, shifts, statistics, biases) that several nodes share are copied for each node, because exporters
    merge vectors of equal values that belong to unrelated layers. Shared matrices stay shared.

    Raises:
        GraphError: an output has lost the axis of the batch, or does not depend on the image.
    """
    return _Parser(ir.from_proto(model) if isinstance(model, onnx.ModelProto) else model, name).graph()


class _Parser:
    """Reads one model, and makes the names of its tensors and nodes unique."""

    def __init__(self, model: ir.Model, name: str) -> None:
        self._model, self._name = model, name
        self._image, self._outputs = model.graph.inputs[0], tuple(model.graph.outputs)
        self._weights: dict[str, Array] = {}
        self._labels: set[str] = set()
        values = (*model.graph.inputs, *model.graph.initializers.values(), *(v for n in model.graph for v in n.outputs))
        self._tensors = {str(value.name) for value in values}

    def graph(self) -> Graph:
        self._check_outputs()
        nodes = tuple(self._node(node, position) for position, node in enumerate(self._model.graph))
        graph = Graph(
            name=self._name,
            nodes=nodes,
            input=self._tensor(self._image),
            outputs=tuple(map(self._tensor, self._outputs)),
            shapes={self._tensor(value): _shape(value) for value in self._activations()},
            weights=self._weights,
        )
        graph = _with_flat_logits(graph)
        for name in graph.outputs:
            _check_batch(graph, name, batch_remedy(self._model))
        plain = without_needless_expansions(without_strided_views(without_assignments(without_axes_of_one(graph))))
        return generalise(with_axes_of_windows(slices_as_splits(with_global_pools(without_pads(plain)))))

    def _check_outputs(self) -> None:
        """Refuses an output to which no path leads from the image, and an output that is returned twice."""
        reached: set[ir.Value | None] = {self._image}
        for node in self._model.graph:
            if any(value in reached for value in node.inputs):
                reached.update(node.outputs)
        for output in self._outputs:
            if output is self._image or output not in reached:
                raise GraphError(f"graph {self._name}: its output {output.name} does not depend on the image")
            if self._outputs.count(output) > 1:
                raise GraphError(f"graph {self._name}: it returns {output.name} twice; return each tensor once")

    def _activations(self) -> list[ir.Value]:
        return [self._image, *(value for node in self._model.graph for value in _outputs(node))]

    def _tensor(self, value: ir.Value) -> str:
        """Name of a tensor. INPUT and OUTPUT are reserved for the network's own input, and its output if it has one."""
        name = str(value.name)
        taken = {INPUT: self._image, **({OUTPUT: self._outputs[0]} if len(self._outputs) == 1 else {})}
        return f"{name}.inner" if name in taken and taken[name] is not value else name

    def _node(self, node: ir.Node, position: int) -> Node:
        label = _unused(node.name or f"{node.op_type}_{position}", self._labels)
        rule = rules.find(node.op_type)
        attributes = {name: _attribute(label, attribute) for name, attribute in node.attributes.items()}
        inputs: list[str] = []
        for slot, value in enumerate(node.inputs):
            constant = None if value is None else value.const_value
            name = rule.constant_inputs.get(slot) if rule else None
            if value is None:
                inputs.append("")
            elif constant is None:
                inputs.append(self._tensor(value))
            elif name is not None and len(constant.shape) <= 1:
                array = _array(constant)
                if array.size or array.dtype.kind == "i":  # Resize marks an absent input by an empty float tensor
                    attributes[name] = array.item() if array.ndim == 0 else tuple(array.tolist())
                inputs.append("")
            else:
                inputs.append(self._weight(value, constant, f"{label}.{slot}"))
        while inputs and not inputs[-1]:
            inputs.pop()
        outputs = tuple(self._tensor(value) for value in _outputs(node))
        return Node(label, node.op_type, tuple(inputs), outputs, freeze_attributes(attributes))

    def _weight(self, value: ir.Value, tensor: ir.TensorProtocol, copy_name: str) -> str:
        """Name under which a node reads a constant; each reader of a shared vector gets its own copy."""
        shared = len(value.uses()) > 1 and len(tensor.shape) <= 1
        name = _unused(copy_name, self._tensors) if shared else self._tensor(value)
        if name not in self._weights:
            self._weights[name] = _array(tensor)
        return name


def _unused(name: str, used: set[str]) -> str:
    """The name, with a number behind it where it is used already; notes it as used."""
    number, unused = 1, name
    while unused in used:
        number += 1
        unused = f"{name}.{number}"
    used.add(unused)
    return unused


def _array(tensor: ir.TensorProtocol) -> Array:
    """A copy of a constant that does not share the file's memory.

    Raises:
        GraphError: the constant's data is missing, or its length does not match its shape.
    """
    try:
        return np.array(tensor.numpy(), order="C")
    except Exception as error:
        raise GraphError(f"weight {tensor.name} of shape {tensor.shape} cannot be read: {error}") from error


def _outputs(node: ir.Node) -> list[ir.Value]:
    """Outputs of a node without unused optional ones at the end. Every part of a Split stays, used or not."""
    outputs = list(node.outputs)
    schema = onnx.defs.get_schema(node.op_type)
    if any(output.option == onnx.defs.OpSchema.FormalParameterOption.Variadic for output in schema.outputs):
        return outputs
    required = max(1, schema.min_output)
    while len(outputs) > required and not outputs[-1].uses() and not outputs[-1].is_graph_output():
        outputs.pop()
    return outputs


def _shape(value: ir.Value) -> Shape:
    if value.shape is None:
        raise GraphError(f"tensor {value.name}: its shape could not be inferred; export the network with static shapes")
    return tuple(int(size) for size in value.shape)  # type: ignore[arg-type]


def _attribute(node: str, attribute: ir.Attr) -> Any:
    """An attribute as a number, a string, or a tuple of these."""
    kinds = ir.AttributeType
    if attribute.type in (kinds.INT, kinds.FLOAT, kinds.STRING):
        return attribute.value
    if attribute.type in (kinds.INTS, kinds.FLOATS, kinds.STRINGS):
        return tuple(attribute.value)
    raise GraphError(f"node {node}: attribute {attribute.name} holds a {attribute.type}, which is not supported")


def _check_batch(graph: Graph, output: str, remedy: str) -> None:
    """Raises GraphError for an output that is not ``[1, ...]`` for one image."""
    shape = graph.shapes[output]
    if len(shape) > 1 and shape[0] == 1:
        return
    if len(shape) == 1:
        remedy = "; the axis of the batch is lost: write flatten(1) in place of squeeze() or flatten()"
    raise GraphError(
        f"graph {graph.name}: its output {output} for one image is [1, classes] of a classifier, and [1, ...] of "
        f"another network, not {list(shape)}{remedy}"
    )


def _with_flat_logits(graph: Graph) -> Graph:
    """Flattens logits ``[1, classes, 1, 1]`` of fully convolutional classifiers to ``[1, classes]``.

    The flat logits take the name of the output, because exports keep this name. Several outputs stay as they are.
    """
    shape = graph.shapes[graph.outputs[0]]
    if len(graph.outputs) > 1 or len(shape) < 3 or any(size != 1 for size in shape[2:]):
        return graph
    maps = f"{graph.output}:maps"
    flat = Node(f"{graph.output}:flatten", "Flatten", (maps,), (graph.output,))
    renamed = {graph.output: maps}
    nodes = (
        replace(
            node,
            inputs=tuple(renamed.get(name, name) for name in node.inputs),
            outputs=tuple(renamed.get(name, name) for name in node.outputs),
        )
        for node in graph.nodes
    )
    return replace(graph, nodes=(*nodes, flat), shapes={**graph.shapes, maps: shape, graph.output: shape[:2]})


def generalise(graph: Graph) -> Graph:
    """The graph with attributes that hold for every SubNet; a second run changes nothing."""
    propagation = propagate(graph)
    static = {part.node for part in propagation.static}
    return replace(graph, nodes=tuple(_general(node, propagation, node.name in static) for node in graph.nodes))


def _general(node: Node, propagation: Propagation, static: bool) -> Node:
    rule = rules.find(node.kind)
    if rule is None or (static and not rule.follows_shapes):
        return node
    inputs, outputs = (
        [propagation.dimensions.get(name, ()) for name in names] for names in (node.inputs, node.outputs)
    )
    return rule.general(node, inputs, outputs)
