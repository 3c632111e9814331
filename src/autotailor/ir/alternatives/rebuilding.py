r"""Rebuilt blocks: a copy of one block that is cheaper inside stands in for the block (AdaptiveNet, section 4.1).

What a block has inside can be left out, reordered and replaced without anybody outside knowing: its *hidden channels*,
those that its expand ratio scales. A kind takes some of them (``Interior.narrowed``) and replaces what writes them. The
last map of the copy is solved on what the block says on pictures, as that of merged blocks (``execution/modules``)::

    x -> block 3 -> y:apart ------------------------\
    x -> block 3, rebuilt -> y:block3.ghost.2 -- Junction -> y
"""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from autotailor.ir.alternatives.alternative import Array, Asked, Branch, alternatives, dense
from autotailor.ir.alternatives.copies import Copy, copy_junctions, part_of
from autotailor.ir.alternatives.merging import unfit
from autotailor.ir.blocks.block import Block
from autotailor.ir.blocks.recognition import find_blocks
from autotailor.ir.dimensions.dimension import EXPAND_RATIO, Atom, Indices
from autotailor.ir.feature import Shape
from autotailor.ir.graph import Graph, Node, Weights, reading_axis
from autotailor.ir.junctions import MERGED, OWNER, SOURCES, branch, kind_of, selected
from autotailor.ir.operators.rule import rules
from autotailor.ir.propagation import Propagation, propagate


@dataclass(frozen=True, eq=False)
class Interior:
    """A block whose inside can be rebuilt.

    Attributes:
        graph: as it was given.
        propagation: of the graph, or of one with alternatives of the same blocks.
        block: the block.
    """

    graph: Graph
    propagation: Propagation
    block: Block

    @cached_property
    def hidden(self) -> tuple[Atom, ...]:
        """The sizes of hidden channels that are axes of their own wherever the block has them."""
        handle = self.block.handles.get(EXPAND_RATIO)
        names = {name for node in self.block.nodes for name in (*node.inputs, *node.outputs) if name}
        axes = {axis for name in names for axis in self.propagation.dimensions[name]}
        within = {atom for axis in axes if not isinstance(axis, Atom) for atom in axis.atoms()}
        return tuple(atom for atom in (handle.atoms if handle else ()) if atom not in within)

    def maps(self) -> tuple[tuple[Node, Atom], ...]:
        """The dense convolutions that write maps of hidden channels, with these channels; gates are left out."""
        dimensions, shapes = self.propagation.dimensions, self.graph.shapes
        convolutions = (n for n in self.block.nodes if n.kind == "Conv" and math.prod(shapes[n.outputs[0]][2:]) > 1)
        dense_ones = (node for node in convolutions if dense(self.graph, node) is not None)
        written = ((node, dimensions[node.outputs[0]][1]) for node in dense_ones)
        return tuple((node, axis) for node, axis in written if isinstance(axis, Atom) and axis in self.hidden)

    def order(self, atom: Atom) -> Indices:
        """Hidden channels, the most important first: by |W[:, c]|^2 E[x_c^2] over the maps W that read them.

        Without pictures E[x^2] is that of a rectified normal variable, whose mean and deviation are shift and gain of
        the last BatchNorm of the channels.
        """
        dimensions, weights = self.propagation.dimensions, self.graph.weights
        energy, worth = np.ones(atom.meta), np.zeros(atom.meta)
        for node in self.block.nodes:
            if node.kind == "BatchNormalization" and dimensions[node.inputs[1]] == (atom,):
                energy = _rectified(*(weights[name].astype(np.float64) for name in node.inputs[1:3]))
            weight = dense(self.graph, node)
            if weight is not None and dimensions[node.inputs[1]][reading_axis(node)] == atom:
                norms = np.square(weight, dtype=np.float64).sum(axis=(0, *range(2, weight.ndim)))
                worth += norms / max(norms.mean(), np.finfo(float).tiny)
        return np.argsort(-energy * worth, kind="stable")

    def narrowed(self, kept: Mapping[Atom, Indices]) -> Branch:
        """The block with some of its hidden channels, in the order in which these are named."""
        dimensions, part = self.propagation.dimensions, part_of(self.graph, self.block)
        weights = dict(part.weights)
        for name in weights:
            for place, axis in enumerate(dimensions[name]):
                if isinstance(axis, Atom) and axis in kept:
                    weights[name] = np.ascontiguousarray(weights[name].take(kept[axis], place))
        sizes = {atom: len(indices) for atom, indices in kept.items()}
        shapes = {
            name: tuple(
                sizes.get(axis, meta) if isinstance(axis, Atom) else meta
                for axis, meta in zip(axes, shape, strict=True)
            )
            for name, shape in part.shapes.items()
            for axes in [dimensions[name]]
        }
        every = {**shapes, **{name: weight.shape for name, weight in weights.items()}}
        nodes = tuple(_specialised(node, every) for node in part.nodes)
        return Branch(nodes, part.output, weights, shapes)


def _specialised(node: Node, shapes: Mapping[str, Shape]) -> Node:
    rule = rules.find(node.kind)
    sizes = ([shapes.get(name, ()) for name in names] for names in (node.inputs, node.outputs))
    return node if rule is None else rule.specialise(node, *sizes)


def _rectified(deviation: Array, mean: Array) -> Array:
    """E[max(z, 0)^2] of normal variables z ``[c]``."""
    size = np.abs(deviation) + np.finfo(np.float32).tiny
    share = np.array([0.5 * (1 + math.erf(value / math.sqrt(2))) for value in mean / size])
    density = np.exp(-np.square(mean / size) / 2) / math.sqrt(2 * math.pi)
    return np.asarray((size**2 + mean**2) * share + size * mean * density)


class Rebuilt(Asked):
    """Base of the kinds that stand in for one block by a copy that is cheaper inside."""

    @abstractmethod
    def fits(self, interior: Interior) -> bool:
        """Whether a block has an inside that this kind can rebuild."""

    @abstractmethod
    def rebuild(self, interior: Interior, choice: str) -> Branch:
        """The block as a choice of this kind has it, of a block that fits.

        Nodes, tensors and weights that the block does not have get names of their own.
        """


def of_blocks() -> Mapping[str, Rebuilt]:
    """The kinds of alternatives that stand in for one block, by name."""
    return {kind: each for kind, each in alternatives().items() if isinstance(each, Rebuilt)}


def rebuildable(graph: Graph, propagation: Propagation, block: Block) -> Interior | None:
    """The inside of a block of which the last map can be solved; None where the block has no such inside."""
    interior = Interior(graph, propagation, block)
    return interior if interior.hidden and not unfit(graph, propagation, block, block) else None


def find_copies(graph: Graph, propagation: Propagation, block: Block, kinds: Mapping[str, Sequence[str]]) -> list[Copy]:
    """The copies of a block for choices that are asked for, by kind, as far as the block can be rebuilt so."""
    pairs = [(each, choice) for kind, each in of_blocks().items() for choice in kinds.get(kind, ())]
    interior = rebuildable(graph, propagation, block) if pairs else None
    if interior is None:
        return []
    fitting = [(each, choice) for each, choice in pairs if each.fits(interior)]
    return [Copy((block,), choice, each.rebuild(interior, choice), block.input) for each, choice in fitting]


def copied_again(graph: Graph) -> Weights:
    """The weights of all copies, merged blocks included, as the blocks have them now that were copied."""
    weights: dict[str, Array] = {}
    joints = copy_junctions(graph)
    if any(kind_of(joint.get(SOURCES)[1]) != MERGED for joint in joints):
        given = selected(graph)
        propagation = propagate(given)
        blocks = {block.nodes[0].name: block for block in find_blocks(given, propagation)}
    for joint in joints:
        choice = joint.get(SOURCES)[1]
        if (kind := of_blocks().get(kind_of(choice))) is None:
            end = f":{joint.name.removesuffix(':junction')}"
            names = (name for node in branch(graph, joint, 1) for name in node.inputs if name in graph.weights)
            weights.update((name, graph.weights[name.removesuffix(end)]) for name in names)
            continue
        block = blocks[joint.get(OWNER)]
        copy = Copy((block,), choice, kind.rebuild(Interior(given, propagation, block), choice), block.input)
        new = copy.renamed()
        weights.update((new[name], weight) for name, weight in copy.branch.weights.items())
    return weights


def replaced(
    part: Branch, old: Sequence[Node], new: Sequence[Node], weights: Weights, shapes: Mapping[str, Shape]
) -> Branch:
    """A part with some nodes in place of others, where the first of these stands; weights that nothing reads go."""
    gone, nodes = {node.name for node in old}, list[Node]()
    for node in part.nodes:
        nodes.extend(new if node.name == old[0].name else () if node.name in gone else (node,))
    used = {name for node in nodes for name in (*node.inputs, *node.outputs)}
    every = {**part.weights, **weights}
    return replace(
        part,
        nodes=tuple(nodes),
        weights={name: weight for name, weight in every.items() if name in used},
        shapes={name: shape for name, shape in {**part.shapes, **shapes}.items() if name in used},
    )
