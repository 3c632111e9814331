"""Finding blocks: templates are matched along the trunk, and inside regions that none of them knows.

A region that no template knows is entered, and so is a neck: a region in which maps become smaller and larger again.
Templates are matched along the paths of the region, or along the rows of
operators between its joins where the region has no paths (each layer of a DenseNet reads all layers before). A row with
weights in which no template finds a block becomes a ``Branch``; of a neck, and between several outputs, each part of a
row between blocks does. A network without any region is a row of ``Plain``
layers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from autotailor.ir.blocks.block import Block, BlockTemplate, Handle, Outline, View, templates
from autotailor.ir.blocks.kinds import BRANCH, PLAIN
from autotailor.ir.blocks.region import Region, Row, flat_nodes, item_nodes, item_output, parse_trunk, rows
from autotailor.ir.dimensions.dimension import WIDTH, Atom, Constant
from autotailor.ir.graph import SINK, Graph, Node
from autotailor.ir.propagation import MAP, Propagation

ROW = 2
"""Axes of the row of numbers that a classifier returns for each image."""
ENLARGING = frozenset({"Resize", "ConvTranspose", "DepthToSpace"})
"""Kinds of operators that make maps larger."""


def find_blocks(graph: Graph, propagation: Propagation) -> tuple[Block, ...]:
    """Parses the trunk and matches templates along it; where there are several outputs, it ends behind all of them."""
    graph = graph.closed
    finder = _Finder(View(graph, propagation))
    trunk = parse_trunk(graph)
    finder.walk(trunk, graph.input)
    if not finder.blocks:
        finder.plain(trunk, graph.input)
    return tuple(finder.blocks)


class _Finder:
    """Collects blocks in the order of the trunk."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.blocks: list[Block] = []

    def walk(self, row: Row, tensor: str, enclosing: str = "", fill: bool = False) -> None:
        """Matches templates along a row that starts at a tensor.

        Args:
            row: of operators and regions.
            tensor: that the first one reads.
            enclosing: where the region around the row forks.
            fill: make a ``Branch`` of the operators between blocks and regions, where some have weights.
        """
        position, between = 0, list[tuple[Node, str]]()
        while position < len(row):
            template, outline = _first_outline(self._view, row, position)
            taken = row[position : position + (outline.length if outline else 1)]
            if isinstance(first := taken[0], Node) and outline is None:
                between.append((first, tensor))
            else:
                self._fill(between, enclosing, fill)
            if template and outline:
                self._add(template.kind, taken, tensor, outline, enclosing)
            elif isinstance(first, Region):
                self._enter(first)
            position, tensor = position + len(taken), item_output(taken[-1])
        self._fill(between, enclosing, fill)

    def _fill(self, between: list[tuple[Node, str]], enclosing: str, fill: bool) -> None:
        """A ``Branch`` of operators one behind the other, each with the tensor that it reads; they are forgotten."""
        row = tuple(node for node, _ in between)
        if fill and self._view.weighted(row):
            self._add_branch(row, between[0][1], enclosing)
        between.clear()

    def plain(self, row: Row, tensor: str) -> None:
        """Makes a block of every weighted operator but the classifier, with the elementwise operators behind it."""
        position = 0
        while position < len(row):
            length = 1
            weighted = self._view.weighted(row[position : position + 1])
            if weighted and any(self._view.written(node) for node in weighted):
                length += self._view.trailing(row, position + 1)
                outline = Outline(length, self._view.kernel_size(weighted), residual=False)
                self._add(PLAIN, row[position : position + length], tensor, outline, "")
            position, tensor = position + length, item_output(row[position + length - 1])

    def _enter(self, region: Region) -> None:
        """Looks for blocks inside a region that no template knows, unless the region is a squeeze-and-excitation."""
        if region.join.kind == "Mul":
            return
        fill = region.join.kind == SINK or _is_neck(self._view.graph, region)
        for row, tensor in rows(self._view.graph, region):
            count = len(self.blocks)
            self.walk(row, tensor, region.fork, fill)
            if len(self.blocks) == count and self._view.weighted(row):
                self._add_branch(row, tensor, region.fork)

    def _add_branch(self, row: Row, tensor: str, enclosing: str) -> None:
        outline = Outline(len(row), self._branch(self._view.weighted(row)), residual=False)
        self._add(BRANCH, row, tensor, outline, enclosing)

    def _branch(self, weighted: tuple[Node, ...]) -> Mapping[str, Handle]:
        """The width of a branch as a ratio of its unmodified width, and inner widths relative to that width."""
        handles = {**self._view.kernel_size(weighted), **self._view.expand_ratio(weighted[:-1], "out")}
        atoms = self._view.written(weighted[-1])
        if atoms:
            handles[WIDTH] = Handle(atoms, Constant(max(atom.meta for atom in atoms)))
        return handles

    def _add(self, kind: str, items: Row, tensor: str, outline: Outline, enclosing: str) -> None:
        name = f"block{len(self.blocks) + 1}"
        self.blocks.append(_block(self._view, name, kind, items, tensor, outline, enclosing))


def _is_neck(graph: Graph, region: Region) -> bool:
    """Whether a map inside a region is smaller than where the region forks, and is enlarged again.

    Networks that return rows alone, as classifiers do, have no necks: their streams of several resolutions are blocks.
    """
    shapes = graph.shapes
    returned = graph.producers[SINK].inputs if SINK in graph.producers else graph.outputs
    return any(len(shapes[name]) > ROW for name in returned) and any(
        node.kind in ENLARGING
        and len(shapes[node.inputs[0]]) == MAP
        and shapes[node.inputs[0]][2:] < shapes[region.fork][2:]
        for node in region.nodes
    )


def _first_outline(view: View, trunk: Row, position: int) -> tuple[BlockTemplate | None, Outline | None]:
    if isinstance(item := trunk[position], Region) and _is_neck(view.graph, item):
        return None, None
    for template in templates():
        outline = template.recognise(view, trunk, position)
        if outline:
            return template, outline
    return None, None


def _block(view: View, name: str, kind: str, items: Row, tensor: str, outline: Outline, enclosing: str) -> Block:
    output = item_output(items[-1])
    dimensions = view.propagation.dimensions
    entering = {atom for d in dimensions[tensor] for atom in d.atoms()}
    leaving = {atom for d in dimensions[output] for atom in d.atoms()}
    handles = {
        kind: replace(handle, atoms=kept)
        for kind, handle in outline.handles.items()
        if (kept := _inner(handle, entering if kind == WIDTH else entering | leaving))
    }
    return Block(
        name=name,
        kind=kind,
        nodes=tuple(node for item in items for node in item_nodes(item)),
        input=tensor,
        output=output,
        width_in=view.channels(tensor),
        width_out=view.channels(output),
        handles=handles,
        granules=_granules(view, items, handles),
        removable=outline.residual
        and dimensions[tensor] == dimensions[output]
        and not _is_returned(view.graph, output),
        enclosing=enclosing,
    )


def _is_returned(graph: Graph, tensor: str) -> bool:
    """Whether a tensor is one of several outputs: two outputs would be one tensor if its block were removed."""
    return any(reader.kind == SINK for reader in graph.consumers.get(tensor, ()))


def _inner(handle: Handle, outer: set[Atom]) -> tuple[Atom, ...]:
    """Atoms of a handle that no tensor outside of the block depends on."""
    return tuple(atom for atom in handle.atoms if atom not in outer)


def _granules(view: View, items: Row, handles: Mapping[str, Handle]) -> dict[Atom, int]:
    """Channels per unit of each atom: the width of the atom's operator over the atom's size."""
    granules: dict[Atom, int] = {}
    for node in flat_nodes(items):
        channels = view.channels(node.outputs[0])
        for atom in channels.atoms():
            granules.setdefault(atom, channels.meta // atom.meta)
    return {atom: granules[atom] for handle in handles.values() for atom in handle.atoms if atom in granules}


def loose_nodes(graph: Graph, blocks: tuple[Block, ...], view: View) -> Iterator[tuple[Node, Block | None]]:
    """Weighted operators outside of blocks, each with the block that follows (None behind the last block)."""
    inside = {node.name for block in blocks for node in block.nodes}
    starts = {block.nodes[0].name: block for block in blocks}
    following: Block | None = None
    for node in reversed(graph.nodes):
        following = starts.get(node.name, following)
        if node.name not in inside and view.weighted((node,)):
            yield node, following
