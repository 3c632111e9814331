"""Removes an Expand in front of operators that broadcast anyway, because an Expand fixes sizes that may change."""

from dataclasses import replace

import numpy as np

from autotailor.ir.graph import Graph, Node

BROADCASTING = frozenset({"Add", "Sub", "Mul", "Div"})


def without_needless_expansions(graph: Graph) -> Graph:
    """The graph without every Expand whose readers give the same result without it."""
    stands_for = {
        node.outputs[0]: node.inputs[0] for node in graph.nodes if node.kind == "Expand" and _is_needless(graph, node)
    }

    def source(name: str) -> str:
        while name in stands_for:
            name = stands_for[name]
        return name

    nodes = tuple(
        replace(node, inputs=tuple(map(source, node.inputs)))
        for node in graph.nodes
        if node.outputs[0] not in stands_for
    )
    return replace(graph, nodes=nodes)


def _is_needless(graph: Graph, node: Node) -> bool:
    """Whether every reader of an Expand broadcasts, and gives a result of the same shape by its other operand."""
    if node.outputs[0] in graph.outputs:
        return False
    return all(_broadcasts(graph, node, reader) for reader in graph.consumers.get(node.outputs[0], ()))


def _broadcasts(graph: Graph, node: Node, reader: Node) -> bool:
    others = [name for name in reader.inputs if name != node.outputs[0]]
    if reader.kind not in BROADCASTING or len(others) != 1 or others[0] in graph.weights:
        return False
    before, after = graph.shapes.get(node.inputs[0], ()), graph.shapes[node.outputs[0]]
    other = graph.producers.get(others[0])
    if len(before) != len(after) or (other is not None and other.kind == "Expand"):
        return False
    return np.broadcast_shapes(before, graph.shapes[others[0]]) == graph.shapes[reader.outputs[0]]
