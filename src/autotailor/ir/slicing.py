"""A SubNet as a graph of its own: removed blocks bypassed, weights sliced, shapes and attributes deduced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.ir.architecture import Architecture
from autotailor.ir.block import Block
from autotailor.ir.dimension import Atom, Indices, Sizes
from autotailor.ir.feature import Shape
from autotailor.ir.graph import Graph, Node
from autotailor.ir.operator import Dimensions, rules
from autotailor.ir.propagation import Propagation
from autotailor.ir.resampling import is_resampled, resampling_matrix
from autotailor.ir.subnet import SubNet
from autotailor.ir.variable import Gate

Orders = Mapping[Atom, Indices]


def removed_blocks(blocks: Sequence[Block], gates: Mapping[str, Gate], subnet: SubNet) -> tuple[Block, ...]:
    """Blocks that the SubNet's depths remove."""
    positions = subnet.space.positions
    return tuple(
        block
        for block in blocks
        if (gate := gates.get(block.name)) is not None and subnet.indices[positions[gate.variable]] >= gate.open_choices
    )


def bypasses(removed: Sequence[Block]) -> dict[str, str]:
    """Output tensor of each removed block to the tensor that stands for it."""
    stands_for: dict[str, str] = {}
    for block in removed:
        stands_for[block.output] = stands_for.get(block.input, block.input)
    return stands_for


def kept_nodes(graph: Graph, removed: Sequence[Block]) -> tuple[Node, ...]:
    """Nodes outside removed blocks, reading around them."""
    gone = {node.name for block in removed for node in block.nodes}
    stands_for = bypasses(removed)
    return tuple(
        replace(node, inputs=tuple(stands_for.get(name, name) for name in node.inputs))
        for node in graph.nodes
        if node.name not in gone
    )


def active_shapes(
    architecture: Architecture, propagation: Propagation, names: Sequence[str], sizes: Sizes
) -> dict[str, Shape]:
    """Deduced shapes of tensors."""
    return {
        name: tuple(architecture.active(d, sizes, name) for d in propagation.dimensions[name]) for name in names if name
    }


def take(weight: npt.NDArray[Any], axes: Dimensions, sizes: Sizes, orders: Orders) -> npt.NDArray[Any]:
    """The part of a weight that stays, axis by axis."""
    if not axes:
        return weight
    resampled = [is_resampled(axis, sizes) for axis in axes]
    kept = (np.arange(a.meta) if r else a.indices(sizes, orders) for a, r in zip(axes, resampled, strict=True))
    taken = weight[np.ix_(*kept)]
    for position in np.flatnonzero(resampled):
        matrix = resampling_matrix(axes[position], sizes)
        taken = np.moveaxis(np.tensordot(matrix, taken, (1, position)), 0, position)
    return np.ascontiguousarray(taken, dtype=weight.dtype)


def slice_graph(
    graph: Graph,
    propagation: Propagation,
    architecture: Architecture,
    removed: Sequence[Block],
    subnet: SubNet,
) -> Graph:
    """The standalone graph of one SubNet.

    Raises:
        IllegalSubNetError: a dimension vanished, for instance a map smaller than a pooling window.
    """
    sizes = architecture.sizes(subnet.assignment)
    nodes = kept_nodes(graph, removed)
    activations = [graph.input, *(name for node in nodes for name in node.outputs)]
    used = {name for node in nodes for name in node.inputs if name in graph.weights}
    shapes = active_shapes(architecture, propagation, activations, sizes)
    weights = {name: take(graph.weights[name], propagation.dimensions[name], sizes, {}) for name in sorted(used)}
    every = {**shapes, **{name: tuple(weight.shape) for name, weight in weights.items()}}
    stands_for = bypasses(removed)
    return Graph(
        name=graph.name,
        nodes=tuple(specialise(node, every) for node in nodes),
        input=graph.input,
        output=stands_for.get(graph.output, graph.output),
        shapes=shapes,
        weights=weights,
    )


def specialise(node: Node, shapes: Mapping[str, Shape]) -> Node:
    """The node with attributes that follow its active shapes."""
    rule = rules.find(node.kind)
    if rule is None:
        return node
    return rule.specialise(node, [shapes.get(n, ()) for n in node.inputs], [shapes.get(n, ()) for n in node.outputs])
