"""Writes a Gather that picks every element in order as a Reshape, so that it holds for every batch and every width.

PyTorch's newer exporter ends the global pooling of maps that lie channels last in memory (ConvNeXt of torchvision,
networks in ``torch.channels_last``) in a strided view, for which ONNX has no operator. The exporter flattens all axes,
the batch among them, and picks the elements by their positions:

    Gather(Reshape(x, [-1]), [[[[0]], [[1]], [[2]]]])  ->  Reshape(x, [1, 3, 1, 1])

The positions of one image would be those of each image of a batch, and nothing could be removed from the flat axis.
"""

from dataclasses import replace

import numpy as np

from autotailor.ir.feature import freeze_attributes
from autotailor.ir.graph import Graph, Node


def without_strided_views(graph: Graph) -> Graph:
    """The graph with every Gather of all elements of a flat view in their order written as a Reshape."""
    nodes = tuple(_reshape(graph, node) if _is_view(graph, node) else node for node in graph.nodes)
    if nodes == graph.nodes:
        return graph
    read = {*graph.outputs, *(name for node in nodes for name in node.inputs)}
    flat = {node.inputs[0] for node in graph.nodes if _is_view(graph, node)} - read
    return replace(graph, nodes=tuple(node for node in nodes if node.outputs[0] not in flat))


def _is_view(graph: Graph, node: Node) -> bool:
    """Whether a node is a Gather that reads all elements of a flat view of a tensor, in their order."""
    if node.kind != "Gather" or len(node.inputs) != 2 or node.inputs[1] not in graph.weights:
        return False
    flat = graph.producers.get(node.inputs[0])
    if flat is None or flat.kind != "Reshape" or any(flat.inputs[1:]) or len(graph.shapes[flat.outputs[0]]) != 1:
        return False
    positions = graph.weights[node.inputs[1]]
    return bool(np.array_equal(positions.ravel(), np.arange(graph.shapes[flat.outputs[0]][0])))


def _reshape(graph: Graph, node: Node) -> Node:
    """A Reshape of what the flat view reads, in place of the Gather."""
    flat, shape = graph.producers[node.inputs[0]], graph.shapes[node.outputs[0]]
    return Node(node.name, "Reshape", flat.inputs[:1], node.outputs, freeze_attributes({"shape": shape}))
