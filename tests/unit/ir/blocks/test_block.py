"""Blocks and stages: what templates find."""

from collections import Counter
from typing import Any

import pytest

import autotailor
from autotailor.ir.blocks.block import (
    BlockTemplate,
    Handle,
    Outline,
    ResidualTemplate,
    View,
    register_template,
    templates,
)
from autotailor.ir.blocks.region import Row
from autotailor.ir.dimensions.dimension import Atom, Kernel
from autotailor.ir.errors import GraphError

KERNEL = Handle((Kernel("k", 7),), None, least=3, step=2)
HEADS = Handle((Atom("heads", 4),), None)


def kinds(net: autotailor.SuperNet) -> Counter[str]:
    return Counter(block.kind for block in net.blocks)


def test_templates_are_registered_once() -> None:
    names = [t.kind for t in templates()]
    assert sorted(names) == sorted(set(names))
    assert {"Bottleneck", "BasicResidual", "InvertedResidual", "DepthwiseSeparable", "Residual"} <= set(names)


def test_small_networks(any_net: autotailor.SuperNet) -> None:
    expected = {
        "resnet": ({"Bottleneck": 5}, [2, 3]),
        "mobilenet": ({"InvertedResidual": 3}, [3]),
        "transformer": ({"TransformerBlock": 3}, [3]),
        "grouped": ({"Bottleneck": 1, "Branch": 1}, [1, 1]),
    }[any_net.name]
    assert kinds(any_net) == expected[0]
    assert [len(s.blocks) for s in any_net.stages] == expected[1]
    assert not any_net.static_parts


def recognise(self: object, view: View, trunk: Row, position: int) -> Outline | None:
    return None


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (object, "object: expected a class that derives from BlockTemplate"),
        (type("Mine", (BlockTemplate,), {"kind": "Mine"}), "Mine: it lacks recognise; define what is missing"),
        (type("Mine", (ResidualTemplate,), {"kind": "Mine"}), "Mine: it lacks fits; define what is missing"),
        (
            type("Mine", (BlockTemplate,), {"recognise": recognise}),
            "Mine: kind is None and order is 50, expected a text",
        ),
        (
            type("Mine", (BlockTemplate,), {"recognise": recognise, "kind": "Mine", "order": "first"}),
            "order is 'first', expected a text and an integer",
        ),
        (
            type("Mine", (BlockTemplate,), {"recognise": recognise, "kind": "Bottleneck"}),
            "two block templates of kind Bottleneck: Bottleneck and Mine; rename one",
        ),
    ],
)
def test_a_template_that_could_not_be_used_is_refused_when_it_is_registered(template: Any, words: str) -> None:
    before = templates()
    with pytest.raises(GraphError, match=words):
        register_template(template)
    assert templates() == before


def test_kernels_lose_a_ring_at_a_time_and_heads_one() -> None:
    assert KERNEL.sizes() == (3, 5, 7)
    assert HEADS.sizes() == (1, 2, 3, 4)


@pytest.mark.parametrize("size", [-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 3.5, 5.0])
def test_what_is_allowed_is_what_is_listed(size: float) -> None:
    assert KERNEL.allows(size) == (size in KERNEL.sizes())
    assert HEADS.allows(size) == (size in HEADS.sizes())
