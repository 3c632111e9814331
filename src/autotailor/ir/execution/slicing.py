"""A SubNet as a graph of its own: without removed blocks, with sliced weights, deduced shapes and attributes."""

from collections.abc import Mapping

from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.execution.active_weights import plan_active
from autotailor.ir.execution.weight_plan import take_array
from autotailor.ir.feature import Shape
from autotailor.ir.graph import Graph, Node
from autotailor.ir.operators.rule import rules
from autotailor.ir.space.subnet import SubNet


def slice_graph(elastic: ElasticGraph, subnet: SubNet) -> Graph:
    """The standalone graph of one SubNet.

    Raises:
        IllegalSubNetError: a dimension vanishes, for instance of a map smaller than a pooling window.
    """
    graph, sizes, kept = elastic.graph, elastic.sizes(subnet), elastic.remainder(subnet)
    activations = [graph.input, *(name for node in kept.nodes for name in node.outputs)]
    used = {name for node in kept.nodes for name in node.inputs if name in graph.weights}
    shapes = elastic.shapes(activations, sizes)
    weights = {name: take_array(graph.weights[name], plan_active(elastic, name, sizes)) for name in sorted(used)}
    every = {**shapes, **{name: tuple(weight.shape) for name, weight in weights.items()}}
    return Graph(
        name=graph.name,
        nodes=tuple(specialise(node, every) for node in kept.nodes),
        input=graph.input,
        outputs=tuple(map(kept.tensor, graph.outputs)),
        shapes=shapes,
        weights=weights,
        given=graph.given,
        parameters=graph.parameters & weights.keys(),
        buffers=graph.buffers & weights.keys(),
    )


def specialise(node: Node, shapes: Mapping[str, Shape]) -> Node:
    """The node with attributes that follow its active shapes."""
    rule = rules.find(node.kind)
    if rule is None:
        return node
    return rule.specialise(node, [shapes.get(n, ()) for n in node.inputs], [shapes.get(n, ()) for n in node.outputs])
