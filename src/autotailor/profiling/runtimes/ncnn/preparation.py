"""Rewrites ONNX models so that pnnx reads them right; the models compute the same numbers as before.

pnnx (20261020) loses the axis of a sum or mean over a single axis that is an input (sums since opset 13, means since
18), and then reduces nothing. An axis that is named twice stays, and counts once (``param.named_once`` cleans up)::

    ReduceMean(x, axes=[k])  ->  ReduceMean(x, axes=[k, k])

pnnx recognises group normalisation only by the shapes that PyTorch's exporter writes, of which the first has no sizes::

    Reshape(InstanceNormalization(Reshape(x, [-1, groups, 4096]), ones, zeros), [-1, 64, 8, 8])
        ->  Reshape(InstanceNormalization(Reshape(x, [0, groups, -1]), ones, zeros), [1, 64, 8, 8])

pnnx takes the pads in front of the axes also for those behind, and has no layer for means with unequal pads::

    MaxPool(x, pads=[0, 0, 1, 1])                          ->  MaxPool(Pad(x, [0, 0, 1, 1], the lowest number))
    AveragePool(x, pads=[0, 0, 1, 1], count_include_pad=1) ->  AveragePool(Pad(x, [0, 0, 1, 1], 0.0))

pnnx does not read a Pad that leaves ONNX's defaults out::

    Pad(x, pads)  ->  Pad(x, pads, 0.0, mode="constant")
"""

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from autotailor.profiling.runtimes.ncnn.layers.convolutions import LOWEST, needs_margin

REDUCTIONS = ("ReduceSum", "ReduceMean")


def prepare(model: onnx.ModelProto) -> onnx.ModelProto:
    """Rewrites a model for pnnx in place, and returns it.

    Args:
        model: a model with a batch of 1, as ``SuperNet.export_onnx`` writes it.
    """
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        nodes += [_axis_twice(node, graph, constants)] if node.op_type in REDUCTIONS else _margin(node, graph)
    del graph.node[:]
    graph.node.extend(nodes)
    _group_shapes(graph, constants)
    _pad_defaults(graph)
    return model


def _constant(graph: onnx.GraphProto, name: str, value: npt.ArrayLike) -> str:
    """Adds a constant of 64-bit integers."""
    graph.initializer.append(numpy_helper.from_array(np.asarray(value, dtype=np.int64), name))
    return name


def _axis_twice(node: onnx.NodeProto, graph: onnx.GraphProto, constants: dict[str, onnx.TensorProto]) -> onnx.NodeProto:
    """Names the axis of a reduction over one axis twice."""
    if len(node.input) > 1 and node.input[1] in constants:
        axes = numpy_helper.to_array(constants[node.input[1]]).ravel().tolist()
        if len(axes) == 1 and axes != [0]:
            node.input[1] = _constant(graph, f"{node.output[0]}.prepared.axes", axes * 2)
    return node


def _margin(node: onnx.NodeProto, graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Writes unequal pads of a pooling as a Pad in front of it, where the Pad says the same."""
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    if not needs_margin(node.op_type, attributes):
        return [node]
    pads, prefix = attributes["pads"], f"{node.output[0]}.margin"
    begins, ends = pads[: len(pads) // 2], pads[len(pads) // 2 :]
    amounts = _constant(graph, f"{prefix}.pads", [0, 0, *begins, 0, 0, *ends])
    number = np.float32(LOWEST if node.op_type == "MaxPool" else 0.0)
    graph.initializer.append(numpy_helper.from_array(np.array(number), f"{prefix}.value"))
    pad = helper.make_node("Pad", [node.input[0], amounts, f"{prefix}.value"], [prefix], prefix, mode="constant")
    node.input[0] = prefix
    next(attribute for attribute in node.attribute if attribute.name == "pads").ints[:] = [0] * len(pads)
    return [pad, node]


def _pad_defaults(graph: onnx.GraphProto) -> None:
    """Writes mode and number of each Pad out."""
    for node in graph.node:
        if node.op_type != "Pad":
            continue
        if not any(attribute.name == "mode" for attribute in node.attribute):
            node.attribute.append(helper.make_attribute("mode", "constant"))
        if len(node.input) == 2:
            zero = f"{node.output[0]}.value"
            graph.initializer.append(numpy_helper.from_array(np.array(0.0, dtype=np.float32), zero))
            node.input.append(zero)


def _group_shapes(graph: onnx.GraphProto, constants: dict[str, onnx.TensorProto]) -> None:
    """Rewrites the views of group normalisations: the first one without sizes, the second one with a batch of 1."""
    producers = {name: node for node in graph.node for name in node.output}
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    for node in graph.node:
        if node.op_type != "InstanceNormalization" or not _is_identity(node, constants):
            continue
        before, behind = producers.get(node.input[0]), readers.get(node.output[0], [])
        if before is None or len(readers[node.input[0]]) > 1 or len(behind) != 1:
            continue
        grouped, back = _view_shape(before, constants), _view_shape(behind[0], constants)
        if len(grouped) == 3 and grouped[1] > 0 and len(back) > 2 and min(back[1:]) > 0:
            before.input[1] = _constant(graph, f"{node.output[0]}.grouped", [0, grouped[1], -1])
            behind[0].input[1] = _constant(graph, f"{node.output[0]}.back", [1, *back[1:]])


def _view_shape(node: onnx.NodeProto, constants: dict[str, onnx.TensorProto]) -> list[int]:
    """The constant shape of a Reshape; empty where the node is no Reshape, or its shape is computed."""
    if node.op_type != "Reshape" or node.input[1] not in constants:
        return []
    return [int(size) for size in numpy_helper.to_array(constants[node.input[1]])]


def _is_identity(node: onnx.NodeProto, constants: dict[str, onnx.TensorProto]) -> bool:
    """Whether a normalisation has gains of one and shifts of zero."""
    if any(name not in constants for name in node.input[1:3]):
        return False
    gain, shift = (numpy_helper.to_array(constants[name]) for name in node.input[1:3])
    return bool((gain == 1).all() and (shift == 0).all())
