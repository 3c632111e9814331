"""Blocks and stages: what templates find."""

from __future__ import annotations

from collections import Counter

import autotailor
from autotailor.ir.blocks.block import templates


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
