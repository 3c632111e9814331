r"""Junctions: tensors that one of several sources writes, where a block has alternatives.

A junction is a node of the kind ``Junction``. Its first input comes from the network as it was given, every other from
an alternative. A SubNet takes one of the sources: the operator that writes the source writes the junction's output in
place of it, and what only other sources need is not there. So no SubNet has junctions, and whoever reads the output
need not know which source it was::

    x -> Conv -> y:original ------------------\
    x -> Conv(rank) -> z -> Conv -> y:low_rank -- Junction -> y -> BatchNormalization

Where a source stands in for several blocks (a merged block), the attribute ``owner`` names a node of the first of them,
whose variable chooses. Where several such ranges end at one block, their junctions follow one another.
"""

from collections.abc import Mapping
from dataclasses import replace

from autotailor.ir.graph import Graph, Node

JUNCTION = "Junction"
SOURCES = "sources"
"""The attribute of a junction with the kind of alternative, or the choice, that each input comes from."""
OPERATOR = "operator"
"""The kind of the variables that choose among the alternatives of a block."""
OWNER = "owner"
"""The attribute of a junction behind several blocks with the name of a node of the first of them."""
MERGED = "merged"
"""The kind of alternative that stands in for several blocks; its parameter says for how many more than one."""
ORIGINAL = "original"
"""The choice of the network as it was given, and the kind of a junction's first source."""


def junctions(graph: Graph) -> tuple[Node, ...]:
    """The junctions of a graph, in topological order."""
    return tuple(node for node in graph.nodes if node.kind == JUNCTION)


def kind_of(choice: object) -> str:
    """The kind of alternative of a choice ``KIND`` or ``KIND:PARAMETER``; of a number the empty text."""
    return choice.partition(":")[0] if isinstance(choice, str) else ""


def span_of(choice: object) -> int:
    """How many blocks behind its own a choice leaves out, because a merged block stands in for them as well."""
    return int(str(choice).partition(":")[2]) if kind_of(choice) == MERGED else 0


def source_of(junction: Node, choice: object) -> int:
    """The position of the input that a junction takes under a choice; the first where no alternative stands there.

    Args:
        junction: the node.
        choice: as the variable of its block has it.
    """
    choices = junction.get(SOURCES)
    return next((choices.index(name) for name in (choice, kind_of(choice)) if name in choices), 0)


def select(graph: Graph, taken: Mapping[str, int]) -> tuple[Node, ...]:
    """The nodes of a graph without junctions that its outputs need, in topological order.

    Args:
        graph: with junctions.
        taken: name of a junction to the position of the input that it takes; the first where a name is missing.
    """
    nodes = junctions(graph)
    if not nodes:
        return graph.nodes
    sources = {node.name: node.inputs[taken.get(node.name, 0)] for node in nodes}
    written: dict[str, str] = {}
    for node in reversed(nodes):  # junctions may follow one another
        written[sources[node.name]] = written.get(node.outputs[0], node.outputs[0])
    needed, kept = set(graph.outputs), list[Node]()
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs):
            needed.update((sources[node.name],) if node.kind == JUNCTION else node.inputs)
            kept.append(node)
    return tuple(
        replace(node, outputs=tuple(written.get(name, name) for name in node.outputs))
        if written.keys() & node.outputs
        else node
        for node in reversed(kept)
        if node.kind != JUNCTION
    )


def branch(graph: Graph, junction: Node, position: int) -> tuple[Node, ...]:
    """The nodes that are there for a source of a junction alone, as the graph has them, in topological order."""
    given = {node.name for node in select(graph, {})}
    new = {node.name for node in select(graph, {junction.name: position})} - given
    return tuple(node for node in graph.nodes if node.name in new)


def selected(graph: Graph, taken: Mapping[str, int] | None = None) -> Graph:
    """The graph without junctions: as it was given, or with other sources (``select``)."""
    nodes = select(graph, taken or {})
    if nodes is graph.nodes:
        return graph
    used = {name for node in nodes for name in node.inputs}
    return replace(graph, nodes=nodes, weights={n: w for n, w in graph.weights.items() if n in used})
