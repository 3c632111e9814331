"""Which nodes of a graph run as one kernel, and under which choices of a SuperNet they do.

What fuses with an operator depends on who reads its result. An alternative changes that around its ends, and so the
groups are found in the graph of each choice. Which choices matter to a group is found out by trying each alternative
alone and each pair of alternatives of neighbours, because a kernel does not reach farther. The neighbour of a merged
block is the block behind all those that it stands in for.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.graph import Graph, Node
from autotailor.ir.junctions import OWNER, selected
from autotailor.ir.pattern import find_matches
from autotailor.ir.space.gate import Gate
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Choice, Variable


@dataclass(frozen=True)
class FusedGroup:
    """Nodes that run as one kernel.

    Attributes:
        producer: a node of the graph, or a node that stands for the match of a pattern.
        folded: nodes that disappear into the producer's weights.
        followers: nodes that run inside the producer's kernel.
        pattern: the nodes of the graph that the producer stands for; none where the producer is a node of the graph.
    """

    producer: Node
    folded: tuple[Node, ...]
    followers: tuple[Node, ...]
    pattern: tuple[Node, ...] = ()

    @property
    def members(self) -> tuple[Node, ...]:
        """All nodes of the graph that belong to the group, in order."""
        return (*(self.pattern or (self.producer,)), *self.folded, *self.followers)

    @property
    def added(self) -> tuple[str, ...]:
        """Tensors that the sums among the followers add to the kernel's result."""
        inner = {name for node in self.members for name in node.outputs}
        return tuple(n for node in self.followers if node.kind == "Add" for n in node.inputs if n not in inner)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Tensors that the kernel writes."""
        return (self.producer, *self.folded, *self.followers)[-1].outputs


def fuse(graph: Graph, fusion: FusionRules) -> tuple[FusedGroup, ...]:
    """Groups the nodes of a graph; free views are left out."""
    matches = find_matches(graph, fusion.patterns)
    taken = {member.name for match in matches.values() for member in match.members}
    groups: list[FusedGroup] = []
    for node in graph.nodes:
        match = matches.get(node.name)
        if match is None and (node.name in taken or node.kind in fusion.free):
            continue
        group = _grow(graph, node if match is None else match.node, fusion, taken)
        groups.append(group if match is None else replace(group, pattern=match.members))
        taken.update(n.name for n in (*group.folded, *group.followers))
    return tuple(groups)


def _grow(graph: Graph, producer: Node, fusion: FusionRules, taken: set[str]) -> FusedGroup:
    folded: list[Node] = []
    node = producer
    while (following := _only_reader(graph, node)) is not None and (
        producer.kind,
        following.kind,
    ) in fusion.folds:
        folded.append(following)
        node = following
    followers: list[Node] = []
    if (total := _sum_behind(graph, node, producer, fusion)) is not None and total.name not in taken:
        followers.append(total)
        node = total
    following = _only_reader(graph, node)
    if following is not None and (producer.kind, following.kind) in fusion.fuses and following.name not in taken:
        followers.append(following)
    return FusedGroup(producer, tuple(folded), tuple(followers))


def _sum_behind(graph: Graph, node: Node, producer: Node, fusion: FusionRules) -> Node | None:
    """The residual sum that runs inside a producer's kernel; of two such producers the first operand's takes it."""
    total = _reader(graph, node.outputs[0])
    if producer.kind not in fusion.sums or total is None or total.kind != "Add":
        return None
    operands = graph.activations(total)
    if len(set(operands)) != 2 or len({graph.shapes[name] for name in operands}) != 1:
        return None
    return total if operands[0] == node.outputs[0] or not _takes_sums(graph, operands[0], fusion) else None


def _takes_sums(graph: Graph, tensor: str, fusion: FusionRules) -> bool:
    """Whether nothing but a sum reads a tensor, and the producer of the tensor can run the sum inside its kernel."""
    folding = {follower for _, follower in fusion.folds}
    node = graph.producers.get(tensor)
    while node is not None and _reader(graph, node.outputs[0]) is not None:
        if node.kind in fusion.sums:
            return True
        node = graph.producers.get(node.inputs[0]) if node.kind in folding else None
    return False


def _only_reader(graph: Graph, node: Node) -> Node | None:
    """The only reader of a node's output, if there is one and the output is its first input."""
    reader = _reader(graph, node.outputs[0])
    return reader if reader is not None and reader.inputs[0] == node.outputs[0] else None


def _reader(graph: Graph, tensor: str) -> Node | None:
    """The only node that reads a tensor; None where several do, or where the network returns the tensor."""
    readers = graph.consumers.get(tensor, ())
    return readers[0] if len(readers) == 1 and tensor not in graph.outputs else None


def find_groups(elastic: ElasticGraph, fusion: FusionRules) -> tuple[tuple[FusedGroup, Gate | None], ...]:
    """The groups that SubNets have, in the order of the graph, each with the gate that is open where it is one.

    The gate of the producer is left out. None stands for a group that is one wherever its producer is there.
    """
    variables = _in_order(elastic)
    if not variables:
        return tuple((group, None) for group in fuse(elastic.original, fusion))
    fused = _Fused(elastic, fusion)
    order = {node.name: position for position, node in enumerate(elastic.graph.nodes)}
    groups = [each for name in sorted(fused.producers(variables), key=order.__getitem__) for each in fused.of(name)]
    return tuple(groups)


def _in_order(elastic: ElasticGraph) -> list[Variable]:
    """The variables that choose among alternatives, in the order of the graph."""
    position = {node.name: place for place, node in enumerate(elastic.graph.nodes)}
    joints = [(position[node.get(OWNER) or node.name], elastic.operators[node.name]) for node in elastic.joints]
    ordered = (variable for _, variable in sorted(joints, key=lambda each: each[0]))
    return list(dict.fromkeys(variable for variable in ordered if variable is not None))


class _Fused:
    """The groups of a network under choices of the variables that choose among alternatives."""

    def __init__(self, elastic: ElasticGraph, fusion: FusionRules) -> None:
        self._elastic, self._fusion = elastic, fusion
        self._by_choices: dict[tuple[tuple[str, Choice], ...], dict[str, FusedGroup]] = {}
        self._by_sources: dict[tuple[int, ...], dict[str, FusedGroup]] = {}
        self._tried: list[dict[str, Choice]] = []

    def under(self, choices: Mapping[str, Choice]) -> dict[str, FusedGroup]:
        """Producer to its group, under choices of variables; the others stand at the original."""
        chosen = tuple(choices.items())
        if chosen not in self._by_choices:
            taken = self._elastic.taken(choices)
            sources = tuple(taken.values())
            if sources not in self._by_sources:
                groups = fuse(selected(self._elastic.graph, taken), self._fusion)
                self._by_sources[sources] = {group.producer.name: group for group in groups}
            self._by_choices[chosen] = self._by_sources[sources]
        return self._by_choices[chosen]

    def producers(self, variables: list[Variable]) -> set[str]:
        """Tries each choice alone, and the pairs of choices of neighbours; the names of all producers."""
        self._variables = {variable.name: variable for variable in variables}
        self._tried = [{}, *({v.name: choice} for v in variables for choice in v.choices)]
        for place, one in enumerate(variables):
            for a in one.choices:
                other = next((v for v in variables[place + 1 :] if self._matters(v, {one.name: a})), None)
                if other is not None:
                    self._tried += [{one.name: a, other.name: b} for b in other.choices]
        return set().union(*(self.under(choices) for choices in self._tried))

    def _matters(self, variable: Variable, choices: Mapping[str, Choice]) -> bool:
        """Whether a variable says something under choices of others, the rest at the original."""
        return SubNet.from_assignment(self._elastic.space, choices).opens(variable.gate)

    def of(self, producer: str) -> Iterator[tuple[FusedGroup, Gate | None]]:
        """The groups of a producer with their gates."""
        groups = [(choices, group) for choices in self._tried if (group := self.under(choices).get(producer))]
        if len({group for _, group in groups}) == 1:
            yield groups[0][1], None
            return
        names = self._deciding(producer)
        choices = [self._variables[name].choices for name in names]
        table = [self.under(dict(zip(names, each, strict=True))).get(producer) for each in itertools.product(*choices)]
        for group in dict.fromkeys(each for each in table if each is not None):
            is_open = np.array([each == group for each in table]).reshape([len(own) for own in choices])
            yield group, Gate.of(names, is_open)

    def _deciding(self, producer: str) -> tuple[str, ...]:
        """The variables on whose choices it depends what runs with a producer, where the producer is there."""
        names = set()
        for tried in self._tried:
            for name in tried:
                others = {other: choice for other, choice in tried.items() if other != name}
                both = (self.under(tried).get(producer), self.under(others).get(producer))
                if None not in both and both[0] != both[1]:
                    names.add(name)
        return tuple(name for name in self._variables if name in names)
