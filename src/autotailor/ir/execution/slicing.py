"""A SubNet as a graph of its own: removed blocks bypassed, weights sliced, shapes and attributes deduced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.ir.blocks.block import Block
from autotailor.ir.dimensions.dimension import Atom, Indices, Sizes
from autotailor.ir.dimensions.resampling import is_resampled, resampling_matrix
from autotailor.ir.feature import Shape
from autotailor.ir.graph import Graph, Node
from autotailor.ir.operators.rule import Dimensions, rules
from autotailor.ir.propagation import Propagation
from autotailor.ir.space.architecture import Architecture
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Gate

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
