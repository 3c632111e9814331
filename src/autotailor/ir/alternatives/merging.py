r"""Merged blocks: one block in place of two or three that follow one another (AdaptiveNet, section 4.1).

The merged block is a copy of the first block of the range whose ends have the dimensions of the ends of the range, and
so the stride and the widths of the range. The copy reads what the first block of the range reads. A junction behind the
last block takes the copy or the blocks::

    x -> block 3 -> block 4 -> block 5 -> y:apart -------\
    x -> block 3, a copy --------> y:block3.merged.2 -- Junction -> y

Every weight of a copy has a name of its own. The last map of a copy is solved in closed form (``Ending``). Blocks
therefore merge where nothing but BatchNorm, a bias, sums and activation functions stand behind their last map. Where no
block of a range has the dimensions of both ends, because two of them change the shape, the blocks stay as they are.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autotailor.ir.alternatives.alternative import dense
from autotailor.ir.alternatives.copies import Copy, part_of
from autotailor.ir.blocks.block import Block
from autotailor.ir.graph import Graph, Node
from autotailor.ir.junctions import MERGED
from autotailor.ir.operators.rule import rules
from autotailor.ir.propagation import Propagation


@dataclass(frozen=True, eq=False)
class Merge:
    """A range of blocks that one block may stand in for.

    Attributes:
        blocks: of the range.
        model: the block of the range that is copied; None where the blocks cannot be merged.
        reason: why they cannot; empty where they can.
    """

    blocks: tuple[Block, ...]
    model: Block | None
    reason: str = ""

    @property
    def choice(self) -> str:
        """How the variable of the first block calls it."""
        return f"{MERGED}:{len(self.blocks) - 1}"

    def copy(self, graph: Graph) -> Copy | None:
        """The merged block, of a graph as it was given; None where the blocks cannot be merged."""
        if self.model is None:
            return None
        return Copy(self.blocks, self.choice, part_of(graph, self.model), self.model.input)


@dataclass(frozen=True)
class Ending:
    """What a block ends in, from the back: activation functions, sums, BatchNorm or a bias, and a map.

    Attributes:
        activations: kinds and attributes of the activation functions, the last first.
        before: the tensor in front of them.
        norm: the BatchNorm behind the map, if there is one.
        bias: name of the map's bias; empty where nothing is added that does not depend on the image.
        map: the last map.
    """

    activations: tuple[tuple[str, object], ...]
    before: str
    norm: Node | None
    bias: str
    map: Node


def activations_behind(graph: Graph, tensor: str) -> tuple[tuple[tuple[str, object], ...], str]:
    """The activation functions that a tensor went through last, the last first, and the tensor in front of them."""
    activations: list[tuple[str, object]] = []
    while (node := graph.producers.get(tensor)) is not None and _is_activation(node):
        activations.append((node.kind, node.attributes))
        tensor = node.inputs[0]
    return tuple(activations), tensor


def _is_activation(node: Node) -> bool:
    rule = rules.find(node.kind)
    return rule is not None and rule.elementwise and len(node.inputs) == 1


def ending_of(graph: Graph, nodes: Sequence[Node], output: str) -> Ending | None:
    """How some nodes of a graph end that write a tensor; None where they end otherwise.

    Args:
        graph: that the nodes are of.
        nodes: of a block, in topological order.
        output: that they write.
    """
    own = {name: node for node in nodes for name in node.outputs}
    activations, before = activations_behind(graph, output)
    tensor, bias, norm = before, "", None
    node, behind = own.get(tensor), list[Node]()
    while node is not None and node.kind == "Add" and len(set(graph.activations(node))) == 2:
        tensor = max(graph.activations(node), key=lambda name: len(_behind(own, name)))
        node = own.get(tensor)
    if node is not None and node.kind == "BatchNormalization":
        behind, norm, node = [node], node, own.get(node.inputs[0])
    elif node is not None and node.kind == "Add" and (bias := _vector(graph, node)):
        behind, node = [node], own.get(graph.activations(node)[0])
    weight = None if node is None else dense(graph, node)
    if node is None or weight is None or weight.ndim not in (2, 4) or (bias and node.kind != "MatMul"):
        return None
    inner = {name for each in (node, *behind) for name in each.outputs} - {before}
    if any(graph.uses[name] != 1 for name in inner):
        return None
    bias = bias or (node.inputs[2] if len(node.inputs) > 2 else "")
    return Ending(activations, before, norm, bias, node)


def _behind(own: Mapping[str, Node], tensor: str) -> set[str]:
    """Names of the nodes that a tensor follows from, among those that write some tensors."""
    names: set[str] = set()
    pending = [tensor]
    while pending:
        node = own.get(pending.pop())
        if node is not None and node.name not in names:
            names.add(node.name)
            pending.extend(node.inputs)
    return names


def _vector(graph: Graph, node: Node) -> str:
    """Name of the vector that a sum adds to each token; empty where it adds something else."""
    names = [name for name in node.inputs if name in graph.weights and graph.weights[name].ndim == 1]
    fits = names and graph.weights[names[0]].shape[0] == graph.shapes[node.outputs[0]][-1]
    return names[0] if fits else ""


def find_merges(
    graph: Graph, propagation: Propagation, blocks: Sequence[Block], first: int, spared: int
) -> Merge | None:
    """The range of ``spared`` blocks behind the first one, and how it is merged; None where the network ends before.

    Args:
        graph: as it was given.
        propagation: of the graph, or of one with alternatives of the same blocks.
        blocks: of the graph.
        first: place of the first block of the range.
        spared: how many blocks are spared.
    """
    chosen = tuple(blocks[first : first + spared + 1])
    if len(chosen) <= spared:
        return None
    dimensions, ends = propagation.dimensions, (chosen[0].input, chosen[-1].output)
    span = [dimensions[name] for name in ends]
    fitting = (block for block in chosen if [dimensions[name] for name in (block.input, block.output)] == span)
    model = next(fitting, None)
    if not all(_follows(graph, *pair) for pair in itertools.pairwise(chosen)):
        return Merge(chosen, None, "its blocks are not all that follows one another")
    if model is None:
        return Merge(chosen, None, "none of its blocks has the shapes of both ends")
    reason = unfit(graph, propagation, model, chosen[-1])
    return Merge(chosen, None if reason else model, reason)


def _follows(graph: Graph, block: Block, following: Block) -> bool:
    """Whether nothing but a block reads what another block writes."""
    read = {node.name for node in graph.consumers.get(block.output, ())}
    alone = block.output == following.input and block.output not in graph.outputs
    return alone and read <= {node.name for node in following.nodes}


def unfit(graph: Graph, propagation: Propagation, model: Block, last: Block) -> str:
    """Why a copy of a block cannot stand in for blocks that end with the last one; empty where it can."""
    static = {part.node for part in propagation.static}
    written = {name for node in model.nodes for name in node.outputs}
    read = {name for node in model.nodes for name in graph.activations(node)}
    ending = ending_of(graph, model.nodes, model.output)
    if static & {node.name for node in model.nodes}:
        return "a part of the block that fits its ends is static"
    if not read - written <= {model.input}:
        return "the block that fits its ends reads more than the block before it"
    if ending is None:
        return "the block that fits its ends ends in no map that can be solved"
    if activations_behind(graph, last.output)[0] != ending.activations:
        return "its last block ends in other activation functions than the block that fits its ends"
    return ""
