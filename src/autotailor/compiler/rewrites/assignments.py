"""Writes the assignment of a slice (``y[:, :8, 1:] = x``) as Pad and Concat, which know no positions of their own.

Exporters list the index of each element that is assigned. Such lists hold for one image, and for one count of channels:

    ScatterND(zeros, every index of a box, x)  ->  Pad(x) to the whole tensor
    ScatterND(t, every index of a box, x)      ->  Concat(t before the box, x, t behind it)    short in one axis
"""

from dataclasses import replace

import numpy as np

from autotailor.ir.feature import Shape, freeze_attributes
from autotailor.ir.graph import Graph, Node

Box = tuple[tuple[int, int], ...]  # begin and end of each axis


def without_assignments(graph: Graph) -> Graph:
    """The graph with every assignment of a box to zeros, or to a range of one axis, written without indices."""
    nodes: list[Node] = []
    shapes = dict(graph.shapes)
    for node in graph.nodes:
        box = _box(graph, node)
        nodes += [node] if box is None else _written(graph, node, box, shapes)
    return replace(graph, nodes=tuple(nodes), shapes=shapes)


def _box(graph: Graph, node: Node) -> Box | None:
    """The box of a whole batch that a ScatterND writes; None for other nodes and other indices."""
    if node.kind != "ScatterND" or node.inputs[1] not in graph.weights or node.inputs[2] not in graph.shapes:
        return None
    indices, shape = graph.weights[node.inputs[1]], graph.shapes[node.outputs[0]]
    listed = indices.shape[-1]
    if node.get("reduction", "none") != "none" or indices.ndim != listed + 1 or not indices.size:
        return None
    begins = indices.reshape(-1, listed).min(0)
    grid = np.moveaxis(np.indices(indices.shape[:-1]), 0, -1) + begins
    if not np.array_equal(indices, grid) or (begins < 0).any() or indices.shape[0] != shape[0]:
        return None
    ends = begins + np.array(indices.shape[:-1])
    return (*zip(begins.tolist(), ends.tolist(), strict=True), *((0, size) for size in shape[listed:]))


def _written(graph: Graph, node: Node, box: Box, shapes: dict[str, Shape]) -> list[Node]:
    """The nodes in the place of an assignment; the shapes of new tensors are added."""
    base, _, values = node.inputs
    shape = graph.shapes[node.outputs[0]]
    short = [axis for axis, (begin, end) in enumerate(box) if end - begin < shape[axis]]
    if base in graph.weights:
        if graph.weights[base].any() or not short:
            return [node]
        pads = (*(begin for begin, _ in box), *(size - end for (_, end), size in zip(box, shape, strict=True)))
        return [Node(node.name, "Pad", (values,), node.outputs, freeze_attributes({"pads": pads, "mode": "constant"}))]
    if len(short) != 1:
        return [node]
    axis = short[0]
    begin, end = box[axis]
    outside = {f"{node.outputs[0]}:before": (0, begin), f"{node.outputs[0]}:behind": (end, shape[axis])}
    slices = [_slice(base, axis, name, *limits) for name, limits in outside.items() if limits[0] < limits[1]]
    for piece in slices:
        (start,), (stop,) = piece.get("starts"), piece.get("ends")
        shapes[piece.name] = (*shape[:axis], stop - start, *shape[axis + 1 :])
    names = [piece.name for piece in slices]
    parts = (*names[: begin > 0], values, *names[begin > 0 :])
    return [*slices, Node(node.name, "Concat", parts, node.outputs, freeze_attributes({"axis": axis}))]


def _slice(tensor: str, axis: int, name: str, start: int, stop: int) -> Node:
    limits = {"starts": (start,), "ends": (stop,), "axes": (axis,), "steps": (1,)}
    return Node(name, "Slice", (tensor,), (name,), freeze_attributes(limits))
