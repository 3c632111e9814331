"""General attributes: attributes of operators that hold for every batch and every active size.

An exporter writes the sizes of one image into attributes. Once dimensions are known, a Reshape leaves the axis of the
batch open, a Slice that runs to the end of an axis says so, and a Split lists its sizes.
"""

from dataclasses import replace

from autotailor.ir.graph import Graph, Node
from autotailor.ir.operators.rule import rules
from autotailor.ir.propagation import Propagation, propagate


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
