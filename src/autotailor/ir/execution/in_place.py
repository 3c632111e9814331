"""ReLU and residual sums that overwrite what they read, as the code of many networks does in training.

    Conv -> BatchNormalization -> Relu         relu_(...)
    Add(BatchNormalization, shortcut)          ... .add_(shortcut)

A tensor may be overwritten where nothing else reads it and the operator that wrote it does not need it to compute its
gradient: Conv, BatchNormalization and Add need their inputs at most. The results are the same bits; what is saved is
the memory of a second tensor, and the time to fetch it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import torch

from autotailor.ir.graph import Graph, Node
from autotailor.ir.operators.rule import Tensor

WRITERS = frozenset({"Conv", "BatchNormalization", "Add"})
"""Kinds whose gradient does not need their output."""


def find_overwritten(graph: Graph, nodes: Sequence[Node], outputs: Collection[str]) -> dict[str, int]:
    """Name of each node that may overwrite one of its inputs, to the position of that input.

    Args:
        graph: that the nodes are of.
        nodes: those that run, in order.
        outputs: tensors that are returned and must stay.
    """
    reads = Counter(name for node in nodes for name in node.inputs)
    free = {
        name
        for node in nodes
        if node.kind in WRITERS
        for name in node.outputs
        if reads[name] == 1 and name not in outputs
    }
    found = ((node, _position(graph, node, free)) for node in nodes)
    return {node.name: position for node, position in found if position is not None}


def _position(graph: Graph, node: Node, free: set[str]) -> int | None:
    if node.kind == "Add":
        alike = len({graph.shapes.get(name) for name in node.inputs}) == 1
        return next((i for i, name in enumerate(node.inputs) if name in free), None) if alike else None
    return 0 if node.kind == "Relu" and node.inputs[0] in free else None


def overwrite(node: Node, arguments: Sequence[Any], position: int) -> Tensor:
    """Computes a node into its input at a position; into a new tensor where a sum has another type of number."""
    if node.kind != "Add":
        return torch.relu_(arguments[position])
    into, other = arguments[position], arguments[1 - position]
    same = into.dtype == other.dtype
    result: Tensor = into.add_(other) if same else into + other
    return result
