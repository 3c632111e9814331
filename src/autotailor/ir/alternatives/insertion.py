"""Puts alternatives beside operators and ranges of blocks: branches, and junctions that take one of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from autotailor.ir.alternatives.alternative import Branch, of_maps
from autotailor.ir.alternatives.copies import Copy, with_copies
from autotailor.ir.alternatives.merging import find_merges
from autotailor.ir.alternatives.rebuilding import find_copies
from autotailor.ir.blocks.recognition import find_blocks
from autotailor.ir.graph import Graph, Node
from autotailor.ir.junctions import JUNCTION, MERGED, ORIGINAL, SOURCES, junctions, span_of
from autotailor.ir.propagation import propagate

Asked = Mapping[str, Sequence[str]]
"""Kind of alternative to the choices of the kind."""


def with_alternatives(graph: Graph, asked_of: Callable[[str, str], Asked]) -> Graph:
    """The graph with the alternatives of its blocks; the same graph where it has them.

    Args:
        graph: of the network.
        asked_of: what is asked for a block of some name and kind.
    """
    if junctions(graph):
        return graph
    propagation = propagate(graph)
    static = {part.node for part in propagation.static}
    blocks = find_blocks(graph, propagation)
    by_node = {
        node.name: asked_of(block.name, block.kind)
        for block in blocks
        for node in block.nodes
        if node.name not in static
    }
    nodes: list[Node] = []
    weights, shapes = dict(graph.weights), dict(graph.shapes)
    for node in graph.nodes:
        branches = _branches(graph, node, by_node.get(node.name, {}))
        nodes.extend(_joined(node, branches) if branches else (node,))
        for branch in branches.values():
            weights |= branch.weights
            shapes |= {**branch.shapes, original_of(node.outputs[0]): graph.shapes[node.outputs[0]]}
    copies = list[Copy]()
    for first, block in enumerate(blocks):
        own = asked_of(block.name, block.kind)
        copies += find_copies(graph, propagation, block, own)
        merges = (find_merges(graph, propagation, blocks, first, span_of(choice)) for choice in own.get(MERGED, ()))
        copies += [copy for merge in merges if merge is not None and (copy := merge.copy(graph)) is not None]
    copies.sort(key=lambda copy: len(copy.blocks))
    return with_copies(replace(graph, nodes=tuple(nodes), weights=weights, shapes=shapes), graph, copies)


def original_of(tensor: str) -> str:
    """The name that a tensor of the given network has where a junction writes the tensor."""
    return f"{tensor}:{ORIGINAL}"


def given_by(junction: Node) -> str:
    """The tensor of the given network that a junction behind one of its maps stands for.

    The junction writes the tensor under another name where copies of a block end at the tensor as well.
    """
    return junction.inputs[0].removesuffix(f":{ORIGINAL}")


def _branches(graph: Graph, node: Node, by_kind: Asked) -> dict[str, Branch]:
    maps = of_maps()
    fitting = {kind: choices for kind, choices in by_kind.items() if kind in maps and maps[kind].fits(graph, node)}
    built = ((kind, maps[kind].build(graph, node, choices)) for kind, choices in fitting.items())
    return {kind: branch for kind, branch in built if branch is not None}


def _joined(node: Node, branches: Mapping[str, Branch]) -> Iterator[Node]:
    """A node, the branches that may stand in for it, and the junction behind them."""
    output = node.outputs[0]
    yield replace(node, outputs=(original_of(output),))
    for branch in branches.values():
        yield from branch.nodes
    sources = (original_of(output), *(branch.output for branch in branches.values()))
    yield Node(f"{node.name}:junction", JUNCTION, sources, (output,), ((SOURCES, (ORIGINAL, *branches)),))
