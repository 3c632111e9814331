"""Stages: runs of blocks that hand on the same resolution and width (paper, section 4.1.3, step 3)."""

from collections.abc import Sequence
from dataclasses import dataclass

from autotailor.ir.blocks.block import Block
from autotailor.ir.dimensions.dimension import Dimension
from autotailor.ir.graph import Graph


@dataclass(frozen=True, eq=False)
class Stage:
    """A run of blocks.

    Attributes:
        name: ``stage1``, ``stage2`` ...
        blocks: in the order of the trunk.
        widths: channel dimensions of the outputs of its blocks; a residual sum couples them into one.
        removable: blocks that a depth can remove, the last one first.
    """

    name: str
    blocks: tuple[Block, ...]
    widths: tuple[Dimension, ...]
    removable: tuple[Block, ...]


def find_stages(graph: Graph, blocks: Sequence[Block]) -> tuple[Stage, ...]:
    """Divides blocks into stages wherever the shape of a block's output changes."""
    groups: list[list[Block]] = []
    for block in blocks:
        joins = groups and _continues(graph, groups[-1][-1], block)
        groups[-1].append(block) if joins else groups.append([block])
    return tuple(_stage(f"stage{i}", group) for i, group in enumerate(groups, 1))


def _continues(graph: Graph, previous: Block, block: Block) -> bool:
    follows = previous.output == block.input or (block.enclosing != "" and previous.enclosing == block.enclosing)
    return follows and graph.shapes[previous.output] == graph.shapes[block.output]


def _stage(name: str, blocks: list[Block]) -> Stage:
    removable: list[Block] = []
    for block in reversed(blocks):
        if not block.removable or len(removable) == len(blocks) - 1:
            break
        removable.append(block)
    return Stage(name, tuple(blocks), tuple(dict.fromkeys(b.width_out for b in blocks)), tuple(removable))
