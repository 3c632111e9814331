"""Stages: where one ends, and which of its blocks can go."""

import itertools

from autotailor.ir.blocks.block import Block
from autotailor.ir.blocks.stage import Stage, find_stages
from autotailor.ir.dimensions.dimension import Atom
from autotailor.ir.graph import Graph, Node

WIDE, NARROW = Atom("wide", 8), Atom("narrow", 4)
SMALL, LARGE = (1, 4, 8, 8), (1, 8, 8, 8)
SHAPES = {"in": SMALL, "a": SMALL, "b": SMALL, "c": LARGE, "d": (1, 8, 4, 4)}


def block(name: str, read: str, written: str, removable: bool = True, enclosing: str = "") -> Block:
    width = WIDE if SHAPES[written][1] == 8 else NARROW
    return Block(name, "Test", (), read, written, width, width, removable=removable, enclosing=enclosing)


def stages(*blocks: Block) -> tuple[Stage, ...]:
    names = ["in", *(found.output for found in blocks)]
    nodes = tuple(Node(name, "Relu", (before,), (name,)) for before, name in itertools.pairwise(names))
    return find_stages(Graph("test", nodes, "in", (names[-1],), SHAPES, {}), blocks)


def test_a_stage_ends_where_width_or_resolution_changes() -> None:
    found = stages(block("1", "in", "a"), block("2", "a", "b"), block("3", "b", "c"), block("4", "c", "d"))
    assert [(stage.name, [b.name for b in stage.blocks]) for stage in found] == [
        ("stage1", ["1", "2"]), ("stage2", ["3"]), ("stage3", ["4"]),
    ]  # fmt: skip
    assert [stage.widths for stage in found] == [(NARROW,), (WIDE,), (WIDE,)]


def test_blocks_that_do_not_follow_each_other_are_of_two_stages_unless_one_region_holds_both() -> None:
    assert len(stages(block("1", "in", "a"), block("2", "in", "b"))) == 2
    assert len(stages(block("1", "in", "a", enclosing="in"), block("2", "in", "b", enclosing="in"))) == 1
    assert len(stages(block("1", "in", "a", enclosing="in"), block("2", "in", "b", enclosing="a"))) == 2


def test_a_depth_removes_the_last_blocks_and_never_all() -> None:
    def names(*removable: bool) -> list[str]:
        blocks = (block(str(i), "a", "a", can) for i, can in enumerate(removable))
        (stage,) = stages(*blocks)
        return [found.name for found in stage.removable]

    assert names(True, True, True) == ["2", "1"]
    assert names(False, True, True) == ["2", "1"]
    assert names(True, False, True) == ["2"]
    assert names(True, True, False) == []
    assert names(True) == []
