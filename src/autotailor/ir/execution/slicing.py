"""A SubNet as a graph of its own: removed blocks bypassed, weights sliced, shapes and attributes deduced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.ir.dimensions.dimension import Atom, Indices, Sizes
from autotailor.ir.dimensions.resampling import is_resampled, resampling_matrix
from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.feature import Shape
from autotailor.ir.graph import Graph, Node
from autotailor.ir.operators.rule import Dimensions, rules
from autotailor.ir.space.subnet import SubNet

Orders = Mapping[Atom, Indices]


def take(weight: npt.NDArray[Any], axes: Dimensions, sizes: Sizes, orders: Orders) -> npt.NDArray[Any]:
    """The part of a weight that stays, axis by axis: a view where stretches of the axes stay."""
    taken = weight
    for position, axis in enumerate(axes):
        if is_resampled(axis, sizes):
            matrix = resampling_matrix(axis, sizes)
            taken = np.moveaxis(np.tensordot(matrix, taken, (1, position)), 0, position)
        else:
            kept = axis.indices(sizes, orders)
            taken = taken[(slice(None),) * position + (kept if (run := stretch(kept)) is None else slice(*run),)]
    return taken.astype(weight.dtype, copy=False)


def stretch(indices: Indices) -> tuple[int, int] | None:
    """First index of consecutive ones and the one after the last; None where they are not consecutive."""
    if not len(indices) or not np.array_equal(indices, np.arange(indices[0], indices[0] + len(indices))):
        return None
    return int(indices[0]), int(indices[0]) + len(indices)


def slice_graph(elastic: ElasticGraph, subnet: SubNet) -> Graph:
    """The standalone graph of one SubNet.

    Raises:
        IllegalSubNetError: a dimension vanishes, for instance of a map smaller than a pooling window.
    """
    graph, sizes, kept = elastic.graph, elastic.sizes(subnet), elastic.remainder(subnet)
    activations = [graph.input, *(name for node in kept.nodes for name in node.outputs)]
    used = {name for node in kept.nodes for name in node.inputs if name in graph.weights}
    shapes = elastic.shapes(activations, sizes)
    axes = elastic.propagation.dimensions
    weights = {name: take(graph.weights[name], axes[name], sizes, {}) for name in sorted(used)}
    every = {**shapes, **{name: tuple(weight.shape) for name, weight in weights.items()}}
    return Graph(
        name=graph.name,
        nodes=tuple(specialise(node, every) for node in kept.nodes),
        input=graph.input,
        output=kept.tensor(graph.output),
        shapes=shapes,
        weights=weights,
    )


def specialise(node: Node, shapes: Mapping[str, Shape]) -> Node:
    """The node with attributes that follow its active shapes."""
    rule = rules.find(node.kind)
    if rule is None:
        return node
    return rule.specialise(node, [shapes.get(n, ()) for n in node.inputs], [shapes.get(n, ()) for n in node.outputs])
