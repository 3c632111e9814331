"""The order in which the nodes of a network run, how long each result is needed, and which result is overwritten.

A *position* is a place between two nodes: position 0 lies before the first node, and position p behind p nodes. What a
later run needs to go on at a position are the tensors that are live there.

ReLU and residual sums may overwrite what they read, as the code of many networks does in training::

    Conv -> BatchNormalization -> Relu         relu_(...)
    Add(BatchNormalization, shortcut)          ... .add_(shortcut)

A tensor may be overwritten where nothing else reads it and the operator that wrote it does not need it to compute its
gradient: Conv, BatchNormalization and Add need their inputs at most. The results are the same bits; what is saved is
the memory of a second tensor, and the time to fetch it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from autotailor.ir.dimensions.dimension import Sizes
from autotailor.ir.execution.weight_plan import WeightPlan
from autotailor.ir.graph import Graph, Node
from autotailor.ir.operators.rule import Tensor
from autotailor.ir.space.subnet import SubNet

WRITERS = frozenset({"Conv", "BatchNormalization", "Add"})
"""Kinds whose gradient does not need their output."""


@dataclass(frozen=True, eq=False)
class Schedule:
    """The nodes that run.

    Attributes:
        nodes: in order.
        outputs: tensors that are returned.
        overwritten: node name to the position of the input that the node may overwrite in training.
        last: position of a node in ``nodes`` to the tensors that no later node reads; no output is among them.
        source: tensor of the images.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    overwritten: Mapping[str, int]
    last: Mapping[int, tuple[str, ...]]
    source: str

    @classmethod
    def of(cls, graph: Graph, nodes: Sequence[Node], outputs: tuple[str, ...]) -> Schedule:
        """The schedule of nodes of a graph.

        Args:
            graph: that the nodes are of.
            nodes: those that run, in order.
            outputs: tensors that are returned.
        """
        reads: dict[str, int] = {}
        for position, node in enumerate(nodes):
            reads.update(dict.fromkeys(graph.activations(node), position))
        last: dict[int, tuple[str, ...]] = {}
        for name, position in reads.items():
            if name not in outputs:
                last[position] = (*last.get(position, ()), name)
        return cls(tuple(nodes), outputs, find_overwritten(graph, nodes, outputs), last, graph.input)

    @cached_property
    def live(self) -> tuple[tuple[str, ...], ...]:
        """For each of ``len(nodes) + 1`` positions the tensors that are written before it and needed behind it."""
        read = {name for names in self.last.values() for name in names}.union(self.outputs)
        now = dict.fromkeys(name for name in (self.source,) if name in read)
        positions = [tuple(now)]
        for position, node in enumerate(self.nodes):
            now |= dict.fromkeys(name for name in node.outputs if name in read)
            for name in self.last.get(position, ()):
                now.pop(name, None)
            positions.append(tuple(now))
        return tuple(positions)


@dataclass(frozen=True, eq=False)
class PreparedSubNet:
    """What a module needs to run one SubNet.

    Attributes:
        subnet: which one.
        sizes: active size of each atom.
        schedule: of its nodes, with attributes of the active shapes.
        plans: name of each weight that was used to what is taken of the weight; filled in as weights are used.
    """

    subnet: SubNet
    sizes: Sizes
    schedule: Schedule
    plans: dict[str, WeightPlan] = field(default_factory=dict)


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
    positions = ((node, _position(graph, node, free)) for node in nodes)
    return {node.name: position for node, position in positions if position is not None}


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
