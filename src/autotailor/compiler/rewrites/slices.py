"""Joins Slices that together cover an axis into one Split, such as q, k and v, for which exporters write three Slices.

A Slice states where its piece begins, which changes when an earlier piece becomes smaller. A Split states the size of
each piece instead, and a piece's size does not depend on the other pieces.
"""

from collections import defaultdict
from dataclasses import replace

from autotailor.ir.feature import freeze_attributes
from autotailor.ir.graph import Graph, Node
from autotailor.ir.operators.layout.splitting import slice_ranges

Piece = tuple[int, int, Node]  # start, end, the Slice


def slices_as_splits(graph: Graph) -> Graph:
    """The graph with every family of Slices that covers an axis without gap or overlap written as a Split."""
    families: defaultdict[tuple[str, int], list[Piece]] = defaultdict(list)
    for node in graph.nodes:
        if (piece := _piece(graph, node)) is not None:
            axis, start, end = piece
            families[node.inputs[0], axis].append((start, end, node))
    splits: dict[str, Node] = {}
    gone: set[str] = set()
    for (tensor, axis), pieces in families.items():
        pieces.sort(key=lambda piece: piece[:2])
        if len(pieces) > 1 and _covers(pieces, graph.shapes[tensor][axis]):
            first = min((node for _, _, node in pieces), key=graph.nodes.index)
            splits[first.name] = _split(first.name, tensor, axis, pieces)
            gone.update(node.name for _, _, node in pieces)
    nodes = (splits.get(node.name, node) for node in graph.nodes if node.name in splits or node.name not in gone)
    return replace(graph, nodes=tuple(nodes))


def _piece(graph: Graph, node: Node) -> tuple[int, int, int] | None:
    """(axis, start, end) of a Slice with constant bounds along one axis, step 1; None for anything else."""
    shape = graph.shapes.get(node.inputs[0]) if node.kind == "Slice" else None
    if shape is None or any(node.inputs[1:]) or node.get("starts") is None or node.get("ends") is None:
        return None
    ranges = slice_ranges(node, shape)
    if len(ranges) != 1:
        return None
    axis, (start, end, step) = next(iter(ranges.items()))
    return (axis, start, end) if step == 1 else None


def _covers(pieces: list[Piece], size: int) -> bool:
    bounds = [0, *(end for _, end, _ in pieces)]
    return bounds[-1] == size and all(
        start == bound < end for (start, end, _), bound in zip(pieces, bounds, strict=False)
    )


def _split(name: str, tensor: str, axis: int, pieces: list[Piece]) -> Node:
    outputs = tuple(node.outputs[0] for _, _, node in pieces)
    sizes = tuple(end - start for start, end, _ in pieces)
    return Node(name, "Split", (tensor,), outputs, freeze_attributes({"axis": axis, "split": sizes}))
