"""A graph with all that is known of what can change in it.

Everything that cuts, counts, runs or costs SubNets reads the same five things of a graph: the dimensions of its
tensors, its blocks, its stages, its variables and its gates. They are deduced from the graph once and travel together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from autotailor.ir.blocks.block import Block
from autotailor.ir.blocks.recognition import find_blocks
from autotailor.ir.blocks.stage import Stage, find_stages
from autotailor.ir.dimensions.dimension import Sizes
from autotailor.ir.feature import Settings, Shape
from autotailor.ir.graph import Graph, Node, Weights
from autotailor.ir.junctions import (
    JUNCTION,
    OPERATOR,
    ORIGINAL,
    OWNER,
    SOURCES,
    branch,
    junctions,
    select,
    selected,
    source_of,
    span_of,
)
from autotailor.ir.moments import Moments, Reader, find_readers
from autotailor.ir.propagation import Propagation, propagate
from autotailor.ir.space.architecture import Architecture
from autotailor.ir.space.gate import Gate, either, together
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Choice, Space, Variable


@dataclass(frozen=True, eq=False)
class Remainder:
    """The nodes of a graph that a SubNet keeps.

    Attributes:
        nodes: nodes outside removed blocks and of the chosen alternatives, in topological order; they read around
            removed blocks.
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

    Where blocks have alternatives, the graph has junctions, and the blocks have the nodes of their alternatives.

    A graph without variables is an elastic graph, too: the one whose only SubNet is the unmodified network.

    Attributes:
        graph: the unmodified network with the shared weights, and the alternatives of its blocks.
        propagation: the dimensions of all tensors of the graph.
        blocks: in the order of the trunk.
        stages: in the order of the trunk.
        architecture: the variables, and what they do to dimensions.
        gates: block name to the gate that says whether the block is there; a block that always is has none.
        moments: of what readers read; slices follow from them in closed form. None where slices stay as they stand.
        recalibrated: how much of a SubNet's statistics of BatchNorm comes from its own recalibration; the rest is the
            slice of the largest SubNet's.
        settings: node name to what a variable sets of the node's engine. Files hold no settings.
    """

    graph: Graph
    propagation: Propagation
    blocks: tuple[Block, ...] = ()
    stages: tuple[Stage, ...] = ()
    architecture: Architecture = field(default_factory=lambda: Architecture(Space(())))
    gates: Mapping[str, Gate] = field(default_factory=dict)
    moments: Moments | None = None
    recalibrated: float = 1.0
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: Graph) -> ElasticGraph:
        """The graph with its dimensions, blocks and stages, and without variables."""
        propagation, original = propagate(graph), selected(graph)
        blocks = find_blocks(original, propagation)
        if original is not graph:
            blocks = _with_alternatives(graph, blocks)
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
    def original(self) -> Graph:
        """The unmodified network alone, as it was given."""
        return selected(self.graph)

    @cached_property
    def operators(self) -> Mapping[str, Variable | None]:
        """Junction name to the variable that chooses its source; None where the space has none."""
        owners = {node.name: block.name for block in self.blocks for node in block.nodes}
        return {name: self.space.find(owners[name], OPERATOR) for name in self._joints}

    @property
    def joints(self) -> Iterable[Node]:
        """The junctions, in topological order."""
        return self._joints.values()

    @cached_property
    def _joints(self) -> Mapping[str, Node]:
        """The junctions by name."""
        return {node.name: node for node in junctions(self.graph)}

    def taken(self, choices: Mapping[str, Choice]) -> dict[str, int]:
        """Junction name to the position of its source, under choices of variables; the original where none is named."""
        return {
            name: source_of(self._joints[name], choices.get(variable.name, ORIGINAL))
            for name, variable in self.operators.items()
            if variable is not None
        }

    @cached_property
    def absent(self) -> frozenset[str]:
        """Names of the nodes that no SubNet has: alternatives that the space does not offer."""
        return frozenset(name for name, when in self._presence.items() if when is False)

    @cached_property
    def node_gates(self) -> Mapping[str, Gate]:
        """Node name to the gate that says whether the node is there: of its block, and of the alternatives it is in."""
        gates = {n.name: self.gates[b.name] for b in self.blocks if b.name in self.gates for n in b.nodes}
        for name, gate in self._unmerged.items():
            gates[name] = gates[name] & gate if name in gates else gate
        for name, when in self._presence.items():
            if isinstance(when, Gate):
                gates[name] = when & gates[name] if name in gates else when
        return gates

    @cached_property
    def _unmerged(self) -> Mapping[str, Gate]:
        """Node of a block to the gate that is open where no merged block stands in for the block."""
        choosing = {block.name: self.space.find(block.name, OPERATOR) for block in self.blocks}
        ranges = [joint for joint in self.joints if joint.get(OWNER)]
        copies = {node.name for joint in ranges for node in branch(self.graph, joint, 1)}
        gates: dict[str, Gate] = {}
        for place, block in enumerate(self.blocks):
            variable = choosing[block.name]
            for further, gate in enumerate(merging_gates(variable) if variable is not None else ()):
                for node in self.blocks[place + further].nodes:
                    if node.name not in copies:
                        gates[node.name] = gates[node.name] & gate if node.name in gates else gate
        return gates

    @cached_property
    def _presence(self) -> Mapping[str, Gate | bool]:
        """Node name to where some junction's choice needs the node: always, never, or where a gate is open.

        A junction behind several blocks is read through: for these, ``_unmerged`` says where they are there.
        """
        presence, outputs = dict[str, Gate | bool](), set(self.graph.outputs)
        for node in reversed(self.graph.nodes if self._joints else ()):
            when: Gate | bool = not outputs.isdisjoint(node.outputs)
            for output in node.outputs:
                for reader in self.graph.consumers.get(output, ()):
                    when = either(when, together(presence[reader.name], self._reads(reader, output)))
            presence[node.name] = when
        return presence

    def _reads(self, reader: Node, tensor: str) -> Gate | bool:
        """Where a node needs a tensor that stands among its inputs; a junction needs the source that it takes."""
        if reader.kind != JUNCTION:
            return True
        variable, position = self.operators[reader.name], reader.inputs.index(tensor)
        if variable is None or (position == 0 and span_of(reader.get(SOURCES)[1])):
            return position == 0
        table = np.array([source_of(reader, choice) == position for choice in variable.choices])
        return Gate.of((variable.name,), table).reduced

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
            for node in (select(self.graph, self.taken(subnet.assignment)) if self._joints else self.graph.nodes)
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


def merging_gates(variable: Variable) -> tuple[Gate, ...]:
    """Gates of the block of a variable and of those behind it: closed where a choice merges them into one."""
    spans = [span_of(choice) for choice in variable.choices]
    tables = (np.array([span < max(1, further) for span in spans]) for further in range(max(spans) + 1))
    return tuple(Gate.of((variable.name,), table) for table in tables if max(spans))


def _with_alternatives(graph: Graph, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """The blocks of a graph with the nodes of their alternatives and with their junctions."""
    owners = {node.name: block.name for block in blocks for node in block.nodes}
    for joint in junctions(graph):
        owner = owners[joint.name] = owners[joint.get(OWNER) or graph.producers[joint.inputs[0]].name]
        for position in range(1, len(joint.inputs)):
            owners.update((node.name, owner) for node in branch(graph, joint, position))
    return tuple(
        replace(block, nodes=tuple(node for node in graph.nodes if owners.get(node.name) == block.name))
        for block in blocks
    )
