"""The order in which the nodes of a network run, and how long each of their results is needed.

A *position* is a place between two nodes: position 0 lies before the first node, and position p behind p nodes. What a
later run needs to go on at a position are the tensors that are live there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from autotailor.ir.dimensions.dimension import Sizes
from autotailor.ir.execution.in_place import find_overwritten
from autotailor.ir.execution.weight_plan import WeightPlan
from autotailor.ir.graph import Graph, Node
from autotailor.ir.space.subnet import SubNet


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
        found = [tuple(now)]
        for position, node in enumerate(self.nodes):
            now |= dict.fromkeys(name for name in node.outputs if name in read)
            for name in self.last.get(position, ()):
                now.pop(name, None)
            found.append(tuple(now))
        return tuple(found)


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
