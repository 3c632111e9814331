"""A graph with all that is known of what can change in it.

Everything that cuts, counts, runs or costs SubNets reads the same five things of a graph: the dimensions of its
tensors, its blocks, its stages, its variables and its gates. They are deduced from the graph once and travel together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from autotailor.ir.blocks.block import Block
from autotailor.ir.blocks.recognition import find_blocks
from autotailor.ir.blocks.stage import Stage, find_stages
from autotailor.ir.dimensions.dimension import Sizes
from autotailor.ir.feature import Shape
from autotailor.ir.graph import Graph, Node, Weights
from autotailor.ir.moments import Moments, Reader, find_readers
from autotailor.ir.propagation import Propagation, propagate
from autotailor.ir.space.architecture import Architecture
from autotailor.ir.space.gate import Gate
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Space


@dataclass(frozen=True, eq=False)
class Remainder:
    """The nodes of a graph that a SubNet keeps.

    Attributes:
        nodes: nodes outside removed blocks, in topological order; they read around removed blocks.
        stands_for: output of each removed block to the tensor that is read instead.
    """

    nodes: tuple[Node, ...]
    stands_for: Mapping[str, str]

    def tensor(self, name: str) -> str:
        """The tensor that is read where the whole graph reads ``name``."""
        return self.stands_for.get(name, name)


@dataclass(frozen=True, eq=False)
class ElasticGraph:
    """A graph whose dimensions, blocks, variables and gates are known; a SubNet is cut from it.

    A graph without variables is an elastic graph, too: the one whose only SubNet is the unmodified network.

    Attributes:
        graph: the unmodified network with the shared weights.
        propagation: the dimensions of all tensors of the graph.
        blocks: in the order of the trunk.
        stages: in the order of the trunk.
        architecture: the variables, and what they do to dimensions.
        gates: block name to the gate that says whether the block is there; a block that always is has none.
        moments: of what readers read; slices follow from them in closed form. None where slices stay as they stand.
        recalibrated: how much of a SubNet's statistics of BatchNorm comes from its own recalibration; the rest is the
            slice of the largest SubNet's.
    """

    graph: Graph
    propagation: Propagation
    blocks: tuple[Block, ...] = ()
    stages: tuple[Stage, ...] = ()
    architecture: Architecture = field(default_factory=lambda: Architecture(Space(())))
    gates: Mapping[str, Gate] = field(default_factory=dict)
    moments: Moments | None = None
    recalibrated: float = 1.0

    @classmethod
    def of(cls, graph: Graph) -> ElasticGraph:
        """The graph with its dimensions, blocks and stages, and without variables."""
        propagation = propagate(graph)
        blocks = find_blocks(graph, propagation)
        return cls(graph, propagation, blocks, find_stages(graph, blocks))

    def with_weights(self, weights: Weights) -> ElasticGraph:
        """The same over other weights of the same shapes; what is known of the graph does not depend on values."""
        return replace(self, graph=self.graph.with_weights(weights))

    @property
    def space(self) -> Space:
        """The variables."""
        return self.architecture.space

    @cached_property
    def readers(self) -> Mapping[str, Reader]:
        """Weights through which operators read what can be narrowed, by name."""
        return find_readers(self.graph, self.propagation)

    @cached_property
    def node_gates(self) -> Mapping[str, Gate]:
        """Node name to the gate of the block that the node is in, where the block has one."""
        return {n.name: self.gates[b.name] for b in self.blocks if b.name in self.gates for n in b.nodes}

    def removed(self, subnet: SubNet) -> tuple[Block, ...]:
        """The blocks that a SubNet leaves out."""
        return tuple(block for block in self.blocks if not subnet.opens(self.gates.get(block.name)))

    def remainder(self, subnet: SubNet) -> Remainder:
        """What a SubNet keeps of the graph."""
        removed = self.removed(subnet)
        gone = {node.name for block in removed for node in block.nodes}
        stands_for: dict[str, str] = {}
        for block in removed:
            stands_for[block.output] = stands_for.get(block.input, block.input)
        nodes = (
            replace(node, inputs=tuple(stands_for.get(name, name) for name in node.inputs))
            for node in self.graph.nodes
            if node.name not in gone
        )
        return Remainder(tuple(nodes), stands_for)

    def sizes(self, subnet: SubNet) -> Sizes:
        """Active size of each atom in a SubNet."""
        return self.architecture.sizes(subnet.assignment)

    def shapes(self, names: Iterable[str], sizes: Sizes) -> dict[str, Shape]:
        """Active shapes of tensors; an empty name, which stands for an absent input, has none.

        Raises:
            IllegalSubNetError: a dimension vanishes, for instance of a map smaller than a pooling window.
        """
        dimensions = self.propagation.dimensions
        return {
            name: tuple(self.architecture.active(axis, sizes, name) for axis in dimensions[name])
            for name in names
            if name
        }
