"""The steps of a SubNet: what each node computes with, what it costs, and what is alive behind it.

Two SubNets whose first steps are alike compute the same tensors up to there, because a step names everything that the
result of a node depends on beside the results before it: the node with its attributes, the active shapes around it,
and the active size of each atom that its weights are sliced by.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import accumulate

from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.execution.schedule import PreparedSubNet
from autotailor.ir.feature import OperatorFeature, Shape
from autotailor.ir.graph import Node
from autotailor.ir.operators.rule import OperatorRule, rules

ELEMENT = 16
"""Multiply-accumulates in whose time a processor writes one element, which is all that a normalisation costs."""
BYTES = 4
"""Of an element; evaluation is in fp32."""
MOVING = frozenset({"Cast", "Gather", "Identity", "Slice", "Split", "Transpose"})
"""Kinds whose result can lie in the memory of their input, beside those whose rule says that they move no data."""


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of one SubNet; a position lies before, between or behind them, as in ``ir.execution.schedule``.

    Attributes:
        source: active shape of an image.
        keys: one for each step; what is computed up to a position follows from the keys before the position.
        work: for each position the cost of all steps before it, in multiply-accumulates per image.
        live: for each position the tensors that are needed to go on there.
        sizes: tensor name to the bytes that one image's share of the tensor holds on to.
    """

    source: Shape
    keys: tuple[Hashable, ...]
    work: tuple[float, ...]
    live: tuple[tuple[str, ...], ...]
    sizes: Mapping[str, int]


def steps_of(elastic: ElasticGraph, prepared: PreparedSubNet) -> Steps:
    """The steps of a SubNet that a module of the elastic graph has prepared."""
    nodes = prepared.schedule.nodes
    names = {elastic.graph.input, *(name for node in nodes for name in (*node.inputs, *node.outputs))}
    shapes = elastic.shapes(names, prepared.sizes)
    work = accumulate((_work(elastic, node, shapes) for node in nodes), initial=0.0)
    return Steps(
        source=shapes[elastic.graph.input],
        keys=tuple(_key(elastic, node, shapes, prepared) for node in nodes),
        work=tuple(work),
        live=prepared.schedule.live,
        sizes=_sizes(elastic, nodes, shapes),
    )


def _key(elastic: ElasticGraph, node: Node, shapes: Mapping[str, Shape], prepared: PreparedSubNet) -> Hashable:
    graph, dimensions = elastic.graph, elastic.propagation.dimensions
    weights = dict.fromkeys(name for name in node.inputs if name in graph.weights)
    atoms = dict.fromkeys(atom for name in weights for axis in dimensions[name] for atom in axis.atoms())
    around = tuple(shapes.get(name, ()) for name in (*node.inputs, *node.outputs))
    return node, around, tuple(prepared.sizes(atom) for atom in atoms)


def _work(elastic: ElasticGraph, node: Node, shapes: Mapping[str, Shape]) -> float:
    reads = tuple(shapes[name] for name in elastic.graph.activations(node))
    writes = tuple(shapes[name] for name in node.outputs if name)
    weights = tuple(shapes[name] for name in node.inputs if name in elastic.graph.weights)
    rule = rules.find(node.kind) or OperatorRule()
    macs = rule.macs(OperatorFeature(node.kind, reads, writes, weights, node.attributes)) if reads else 0
    return macs + (0 if rule.view else ELEMENT * sum(map(math.prod, writes)))


def _sizes(elastic: ElasticGraph, nodes: tuple[Node, ...], shapes: Mapping[str, Shape]) -> dict[str, int]:
    """Bytes by tensor; a result that may be a view holds on to all that it is a view of."""
    sizes = {elastic.graph.input: BYTES * math.prod(shapes[elastic.graph.input])}
    for node in nodes:
        behind = sum(sizes[name] for name in elastic.graph.activations(node)) if _may_be_view(node) else 0
        sizes |= {name: max(behind, BYTES * math.prod(shapes[name])) for name in node.outputs if name}
    return sizes


def _may_be_view(node: Node) -> bool:
    rule = rules.find(node.kind)
    return rule is None or rule.view or node.kind in MOVING
