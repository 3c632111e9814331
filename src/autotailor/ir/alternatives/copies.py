"""Copies of blocks that stand in for several blocks (``merging.py``) or, changed inside, for one (``rebuilding.py``).

A copy reads what the first of its blocks reads. Each of its nodes, tensors and weights has a name of its own. A
junction behind the last block takes the copy or the blocks; where several copies end at one block, their junctions
follow one another.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from autotailor.ir.alternatives.alternative import Branch
from autotailor.ir.blocks.block import Block
from autotailor.ir.graph import Graph, Node
from autotailor.ir.junctions import JUNCTION, ORIGINAL, OWNER, SOURCES, junctions

_JUNCTION = ":junction"


@dataclass(frozen=True, eq=False)
class Copy:
    """A copy of a block.

    Attributes:
        blocks: that it stands in for.
        choice: how the variable of the first of them calls it.
        branch: its nodes, tensors and weights, by the names of what was copied.
        input: the tensor that the copied block reads.
    """

    blocks: tuple[Block, ...]
    choice: str
    branch: Branch
    input: str

    @property
    def name(self) -> str:
        """What names of its nodes, tensors and weights end in."""
        return f"{self.blocks[0].name}.{self.choice.replace(':', '.')}"

    @property
    def junction(self) -> str:
        """The name of the junction behind the blocks."""
        return f"{self.name}{_JUNCTION}"

    def renamed(self) -> dict[str, str]:
        """The names of its tensors and weights, by those of what was copied."""
        names = {name for node in self.branch.nodes for name in (*node.inputs, *node.outputs) if name}
        return {name: f"{name}:{self.name}" for name in sorted(names - {self.input})}


def part_of(graph: Graph, block: Block) -> Branch:
    """The nodes of a block with all that they read and write."""
    names = {name for node in block.nodes for name in (*node.inputs, *node.outputs) if name}
    weights = {name: graph.weights[name] for name in sorted(names & graph.weights.keys())}
    return Branch(block.nodes, block.output, weights, {n: graph.shapes[n] for n in sorted(names & graph.shapes.keys())})


def with_copies(graph: Graph, given: Graph, copies: Collection[Copy]) -> Graph:
    """A graph with copies of blocks, and with the junctions that take one of them.

    Args:
        graph: perhaps with alternatives of maps.
        given: the same as it was given; the copies are made of its blocks.
        copies: in the order of the junctions behind one block.
    """
    behind: dict[str, list[Copy]] = {}
    for copy in copies:
        behind.setdefault(copy.blocks[-1].output, []).append(copy)
    nodes = [new for node in graph.nodes for new in _followed(node, behind.get(node.outputs[0], ()))]
    renamed = [(copy.branch, pair) for copy in copies for pair in copy.renamed().items()]
    shapes = {new: branch.shapes[old] for branch, (old, new) in renamed if old in branch.shapes}
    shapes |= {name: given.shapes[output] for output, ending in behind.items() for name in _chain(output, ending)}
    weights = {new: branch.weights[old] for branch, (old, new) in renamed if old in branch.weights}
    return replace(
        graph,
        nodes=tuple(nodes),
        weights={**graph.weights, **weights},
        shapes={**graph.shapes, **shapes},
        parameters=graph.parameters | {new for _, (old, new) in renamed if old in graph.parameters},
        buffers=graph.buffers | {new for _, (old, new) in renamed if old in graph.buffers},
    )


def _chain(output: str, copies: Sequence[Copy]) -> tuple[str, ...]:
    """The tensor of the last block, and what each junction behind it writes."""
    inner = (f"{output}:{copy.name}.apart" for copy in copies[:-1])
    return (f"{output}:apart", *inner, output)


def _followed(node: Node, copies: Sequence[Copy]) -> Iterator[Node]:
    """A node, and behind it the copies and junctions of the blocks that end there."""
    if not copies:
        yield node
        return
    chain = _chain(node.outputs[0], copies)
    yield replace(node, outputs=chain[:1])
    for copy, before, after in zip(copies, chain[:-1], chain[1:], strict=True):
        names = {copy.input: copy.blocks[0].input, **copy.renamed()}
        for each in copy.branch.nodes:
            inputs, outputs = (tuple(names.get(name, name) for name in own) for own in (each.inputs, each.outputs))
            yield replace(each, name=f"{each.name}:{copy.name}", inputs=inputs, outputs=outputs)
        attributes = ((OWNER, copy.blocks[0].nodes[0].name), (SOURCES, (ORIGINAL, copy.choice)))
        yield Node(copy.junction, JUNCTION, (before, names[copy.branch.output]), (after,), attributes)


def copy_junctions(graph: Graph) -> tuple[Node, ...]:
    """The junctions that take copies of blocks, in topological order."""
    return tuple(node for node in junctions(graph) if node.get(OWNER))
