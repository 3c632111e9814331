"""Blocks: stretches of the trunk that a template recognises (paper, section 4.1.3, step 2).

A template looks at the weighted operators of a path and leaves normalisations and activations aside, so that one
template serves every network of its shape. Templates name blocks and the variables of blocks; propagation says which
choices are legal. A new template is one file under ``templates/``.

A *handle* is a size inside a block that a variable can set. The choice of a *ratio* handle is a ratio of a width: of
the block's input or output (expand ratio), or of another dimension (V scale: value width over key width). The choice of
an *absolute* handle is the size itself (kernel size, number of heads). A template offers handles by the kind of
variable that a handle becomes; ``ir/proposal`` treats all kinds alike.
"""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from autotailor.ir.blocks.region import Item, Region, Row, flat_nodes
from autotailor.ir.dimensions.dimension import EXPAND_RATIO, KERNEL_SIZE, Atom, Dimension, Kernel
from autotailor.ir.errors import GraphError
from autotailor.ir.graph import Graph, Node
from autotailor.ir.operators.rule import rules
from autotailor.ir.propagation import Propagation

WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "MatMul")


@dataclass(frozen=True)
class Handle:
    """Something inside a block that a variable can set.

    Attributes:
        atoms: sizes that change together; the atoms of an absolute handle have one meta size.
        relative_to: the width that a ratio multiplies: ``in`` or ``out`` for an end of the block, or another dimension
            in the unit of the atoms; None for an absolute handle.
        least: smallest size that an absolute handle can take.
        step: an absolute handle can take the meta size less multiples of the step (2 for kernels, which are cropped on
            both sides).
    """

    atoms: tuple[Atom, ...]
    relative_to: str | Dimension | None
    least: int = 1
    step: int = 1

    def allows(self, size: float) -> bool:
        """Whether an absolute handle can take a size."""
        meta = self.atoms[0].meta
        return int(size) == size and self.least <= size <= meta and (meta - int(size)) % self.step == 0

    def sizes(self) -> tuple[int, ...]:
        """Every size that an absolute handle can take, rising."""
        return tuple(size for size in range(self.least, self.atoms[0].meta + 1) if self.allows(size))


@dataclass(frozen=True, eq=False)
class Block:
    """A named stretch of the trunk.

    Attributes:
        name: ``block1``, ``block2`` ... in the order of the trunk.
        kind: the name of its template.
        nodes: in topological order.
        input, output: names of the tensors at its ends.
        width_in, width_out: channel dimensions at its ends.
        handles: variable kind (``expand_ratio``, ``kernel_size`` ...) to what it sets.
        granules: channels that one unit of a handle's atom stands for (more than 1 where the atom counts groups).
        removable: whether the block can be bypassed: its output has the dimensions of its input.
        enclosing: the tensor where the region around the block forks, for a block inside an unknown region.
    """

    name: str
    kind: str
    nodes: tuple[Node, ...]
    input: str
    output: str
    width_in: Dimension
    width_out: Dimension
    handles: Mapping[str, Handle] = field(default_factory=dict)
    granules: Mapping[Atom, int] = field(default_factory=dict)
    removable: bool = False
    enclosing: str = ""


@dataclass(frozen=True)
class Outline:
    """A block as a template recognises it.

    Attributes:
        length: how many items of the trunk belong to the block.
        handles: variable kind to what a variable of that kind sets.
        residual: whether the block adds to its input, so that the input can stand for the output.
    """

    length: int
    handles: Mapping[str, Handle]
    residual: bool


@dataclass(frozen=True, eq=False)
class View:
    """What templates look through: the graph with its propagated dimensions."""

    graph: Graph
    propagation: Propagation

    def channels(self, tensor: str) -> Dimension:
        """Channel dimension of an activation: the only axis that can change by itself, wherever the layout puts it.

        Where several axes can change, or none, the channels are axis 1 of a map and the last axis of tokens.
        """
        dimensions = self.propagation.dimensions[tensor]
        elastic = [axis for axis in dimensions if any(not atom.is_spatial for atom in axis.atoms())]
        if len(elastic) == 1:
            return elastic[0]
        return dimensions[-1] if len(dimensions) == 3 else dimensions[min(1, len(dimensions) - 1)]

    def written(self, node: Node) -> tuple[Atom, ...]:
        """Atoms of the channels that a weighted operator writes."""
        dimensions = self.propagation.dimensions[node.outputs[0]]
        axis = dimensions[-1] if node.kind in ("MatMul", "Gemm") else dimensions[min(1, len(dimensions) - 1)]
        return tuple(dict.fromkeys(atom for atom in axis.atoms() if not atom.is_spatial))

    def weighted(self, row: Row) -> tuple[Node, ...]:
        """Weighted operators of a path; operators inside nested regions (squeeze and excitation) are left out."""
        return tuple(item for item in row if isinstance(item, Node) and item.kind in WEIGHTED)

    def all_weighted(self, row: Row) -> tuple[Node, ...]:
        """Weighted operators of a path and of nested regions; regions that end in a product are left out."""
        nodes: list[Node] = []
        for item in row:
            if isinstance(item, Node):
                nodes.extend(self.weighted((item,)))
            elif item.join.kind != "Mul":
                nodes.extend(self.all_weighted(item.nodes if item.paths is None else sum(item.paths, ())))
        return tuple(nodes)

    def is_depthwise(self, node: Node) -> bool:
        """A convolution with one input channel per group."""
        return node.kind == "Conv" and node.get("group", 1) > 1 and self.graph.weights[node.inputs[1]].shape[1] == 1

    def is_pointwise(self, node: Node) -> bool:
        """A dense 1x1 convolution."""
        return (
            node.kind == "Conv"
            and node.get("group", 1) == 1
            and all(size == 1 for size in self.graph.weights[node.inputs[1]].shape[2:])
        )

    def is_dense(self, node: Node) -> bool:
        """A layer that mixes all channels of one pixel or token: a 1x1 convolution, or a constant matrix."""
        return self.is_pointwise(node) if node.kind == "Conv" else len(self.graph.activations(node)) == 1

    def is_elementwise(self, item: Item) -> bool:
        """An activation, or a normalisation."""
        if isinstance(item, Region):
            return False
        rule = rules.find(item.kind)
        return rule is not None and (rule.elementwise or item.kind == "BatchNormalization")

    def trailing(self, row: Row, position: int) -> int:
        """How many elementwise items stand at ``position`` and behind."""
        count = 0
        while position + count < len(row) and self.is_elementwise(row[position + count]):
            count += 1
        return count

    def expand_ratio(self, nodes: Iterable[Node], relative_to: str) -> Mapping[str, Handle]:
        """A ratio over the outputs of some operators; no handle where the outputs are static."""
        atoms = tuple(dict.fromkeys(atom for node in nodes for atom in self.written(node)))
        return {EXPAND_RATIO: Handle(atoms, relative_to)} if atoms else {}

    def kernel_size(self, nodes: Iterable[Node]) -> Mapping[str, Handle]:
        """The kernel of those convolutions that have the largest kernel; no handle where no kernel can be cropped."""
        axes = [axis for n in nodes if n.kind == "Conv" for axis in self.propagation.dimensions[n.inputs[1]][2:]]
        kernels = [axis for axis in dict.fromkeys(axes) if isinstance(axis, Kernel)]
        largest = max((kernel.meta for kernel in kernels), default=0)
        atoms = tuple(kernel for kernel in kernels if kernel.meta == largest)
        return {KERNEL_SIZE: Handle(atoms, None, least=Kernel.LEAST, step=2)} if atoms else {}


def is_view(item: Item) -> bool:
    """A node that moves no data."""
    rule = None if isinstance(item, Region) else rules.find(item.kind)
    return rule is not None and rule.view


class BlockTemplate(ABC):
    """Base of block templates; templates of a low ``order`` are asked first."""

    kind: ClassVar[str]
    order: ClassVar[int] = 50

    @abstractmethod
    def recognise(self, view: View, trunk: Row, position: int) -> Outline | None:
        """The outline of a block that starts at a position of the trunk; None where no such block starts there."""


_templates: list[BlockTemplate] = []


def register_template(template: type[BlockTemplate]) -> type[BlockTemplate]:
    """Class decorator: makes a template known.

    Raises:
        GraphError: the class is no template, lacks a method, its kind or a number as order, or another template has
            this kind.
    """
    name = f"block template {getattr(template, '__name__', template)!s}"
    if not (isinstance(template, type) and issubclass(template, BlockTemplate)):
        raise GraphError(f"{name}: expected a class that derives from BlockTemplate or ResidualTemplate")
    if missing := sorted(getattr(template, "__abstractmethods__", ())):
        raise GraphError(f"{name}: it lacks {' and '.join(missing)}; define what is missing")
    kind, order = getattr(template, "kind", None), template.order
    if not isinstance(kind, str) or not isinstance(order, int):
        raise GraphError(f"{name}: kind is {kind!r} and order is {order!r}, expected a text and an integer")
    for other in _templates:
        if other.kind == kind:
            raise GraphError(
                f"two block templates of kind {kind}: {type(other).__name__} and {template.__name__}; rename one"
            )
    _templates.append(template())
    _templates.sort(key=lambda each: (each.order, each.kind))
    return template


def templates() -> tuple[BlockTemplate, ...]:
    """All templates, in the order they are asked."""
    importlib.import_module("autotailor.ir.blocks.templates")  # registers them; they import this module
    return tuple(_templates)


def residual_paths(item: Item) -> tuple[Row, Row] | None:
    """(main path, shortcut) of a residual sum; the main path has more operators."""
    if not isinstance(item, Region) or item.join.kind != "Add" or item.paths is None or len(item.paths) != 2:
        return None
    shortcut, main = sorted(item.paths, key=lambda path: len(tuple(flat_nodes(path))))
    return main, shortcut


class ResidualTemplate(BlockTemplate):
    """Base of templates for x + f(x) with the activations behind the sum; ratios are relative to the output width."""

    @abstractmethod
    def fits(self, view: View, inner: tuple[Node, ...]) -> bool:
        """Whether the weighted operators of the main path are those of the template."""

    def scaled(self, inner: tuple[Node, ...]) -> tuple[Node, ...]:
        """The weighted operators whose outputs the expand ratio scales."""
        return inner[:-1]

    def recognise(self, view: View, trunk: Row, position: int) -> Outline | None:
        paths = residual_paths(trunk[position])
        if paths is None or not self.fits(view, inner := view.weighted(paths[0])):
            return None
        length = 1 + view.trailing(trunk, position + 1)
        handles = {**view.kernel_size(inner), **view.expand_ratio(self.scaled(inner), "out")}
        return Outline(length, handles, residual=not view.weighted(paths[1]))
