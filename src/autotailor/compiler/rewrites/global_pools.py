"""Writes a pooling window that covers the whole map as global pooling, so that it fits the maps of smaller images.

Models of Caffe2, CNTK, MXNet and old Keras end in ``AveragePool`` with a kernel as large as the last map, 7x7 for
images of 224 pixels. Such a window does not fit a smaller map. Global pooling gives the same result for every map:

    AveragePool(x) = GlobalAveragePool(x) * pixels / divisor        where one window holds every pixel of the map

The divisor is the number of pixels, or the number of pixels and pads where ``count_include_pad`` is set. MaxPool and
LpPool need no factor, because they ignore pads. Strides do not matter where there is only one window.

A mean or a maximum over all pixels (``x.mean((2, 3))``) is global pooling as well, and a network has one form
whichever exporter wrote it:

    ReduceMean(x, axes=[2, 3], keepdims=0) = Flatten(GlobalAveragePool(x))

ncnn's converter reads a maximum in no other form. Of a mean it keeps a map of one pixel, on which a 1x1 convolution
takes up to twice the time of the inner product that it writes behind global pooling (squeeze and excitation).
"""

import math
from dataclasses import replace

import numpy as np

from autotailor.ir.feature import freeze_attributes
from autotailor.ir.graph import Graph, Node
from autotailor.ir.operators.windows.window import WindowAttributes, window_attributes

_REDUCED = {"ReduceMax": "GlobalMaxPool", "ReduceMean": "GlobalAveragePool"}
_GLOBAL = {"AveragePool": "GlobalAveragePool", "MaxPool": "GlobalMaxPool", "LpPool": "GlobalLpPool"}


def with_global_pools(graph: Graph) -> Graph:
    """The graph with every pooling of whole maps written as global pooling."""
    nodes: list[Node] = []
    weights, shapes = dict(graph.weights), dict(graph.shapes)
    for node in graph.nodes:
        if _is_reduced(graph, node):
            nodes += _pooled(graph, node, shapes)
            continue
        if not _is_global(graph, node):
            nodes.append(node)
            continue
        pooled, factor = _global_pool(node), _factor(graph, node)
        if factor != 1:
            mean, scale = f"{node.outputs[0]}:mean", f"{node.outputs[0]}:pads"
            weights[scale], shapes[mean] = np.array(factor, dtype=np.float32), shapes[node.outputs[0]]
            nodes.append(replace(pooled, name=f"{node.name}:mean", outputs=(mean,)))
            pooled = Node(node.name, "Mul", (mean, scale), node.outputs)
        nodes.append(pooled)
    return replace(graph, nodes=tuple(nodes), weights=weights, shapes=shapes)


def _is_reduced(graph: Graph, node: Node) -> bool:
    """Whether a node takes the maximum or the mean over all pixels of a map."""
    if node.kind not in _REDUCED or any(node.inputs[1:]) or node.inputs[0] not in graph.shapes:
        return False
    rank = len(graph.shapes[node.inputs[0]])
    return rank == 4 and sorted(axis % rank for axis in node.get("axes") or ()) == [2, 3]


def _pooled(graph: Graph, node: Node, shapes: dict[str, tuple[int, ...]]) -> list[Node]:
    """Global pooling in the place of a reduction over all pixels; the shape of a new map is added to the shapes."""
    if node.get("keepdims", 1):
        return [Node(node.name, _REDUCED[node.kind], node.inputs[:1], node.outputs)]
    pooled = f"{node.outputs[0]}:map"
    shapes[pooled] = (*graph.shapes[node.inputs[0]][:2], 1, 1)
    flat = Node(node.name, "Flatten", (pooled,), node.outputs, freeze_attributes({"axis": 1}))
    return [Node(f"{node.name}:map", _REDUCED[node.kind], node.inputs[:1], (pooled,)), flat]


def _is_global(graph: Graph, node: Node) -> bool:
    """Whether a pooling without dilation or second output has one window that holds a whole map of several pixels."""
    if node.kind not in _GLOBAL or any(node.outputs[1:]) or node.inputs[0] not in graph.shapes:
        return False
    sizes = graph.shapes[node.inputs[0]][2:]
    window = window_attributes(node, node.get("kernel_shape"))
    if len(window.kernel) != len(sizes) or set(window.dilations) != {1} or math.prod(sizes) == 1:
        return False
    covers = all(0 <= begin <= k - n for begin, k, n in zip(window.pads, window.kernel, sizes, strict=False))
    return covers and all(size == 1 for size in graph.shapes[node.outputs[0]][2:])


def _global_pool(node: Node) -> Node:
    norm = {"p": node.get("p", 2)} if node.kind == "LpPool" else {}
    return Node(node.name, _GLOBAL[node.kind], node.inputs, node.outputs[:1], freeze_attributes(norm))


def _factor(graph: Graph, node: Node) -> float:
    """Number of the map's pixels, divided by the divisor of the average."""
    if node.kind != "AveragePool" or not node.get("count_include_pad", 0):
        return 1.0
    sizes = graph.shapes[node.inputs[0]][2:]
    window = window_attributes(node, node.get("kernel_shape"))
    return math.prod(sizes) / math.prod(_counted(window, i, size) for i, size in enumerate(sizes))


def _counted(window: WindowAttributes, i: int, size: int) -> int:
    """Pixels and pads of one axis inside the first window; a window's overhang (ceil mode) is not counted."""
    rank = len(window.kernel)
    return min(window.kernel[i], window.pads[i] + size + window.pads[i + rank])
