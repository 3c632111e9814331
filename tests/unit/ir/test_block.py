"""Blocks and stages: what templates find."""

from __future__ import annotations

from collections import Counter

import pytest
import timm

import autotailor
from autotailor.ir.block import templates


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
        "grouped": ({"Bottleneck": 1}, [1]),
    }[any_net.name]
    assert kinds(any_net) == expected[0]
    assert [len(s.blocks) for s in any_net.stages] == expected[1]
    assert not any_net.static_parts


@pytest.mark.parametrize(
    ("model", "blocks", "stages", "space", "modifications", "variants"),
    [
        (
            "resnet50", {"Bottleneck": 16}, [3, 4, 6, 3],
            {"resolution": list(range(128, 225, 4)), "depth": [0, 1, 2], "width": [0.65, 0.8, 1.0],
             "blocks": {"Bottleneck": {"expand_ratio": [0.15, 0.2, 0.25]}}},
            100, 3**16 * 3**4 * 3**5 * 25,
        ),
        (
            "mobilenetv2_100", {"InvertedResidual": 16, "DepthwiseSeparable": 1}, [1, 2, 3, 4, 3, 3, 1],
            {"resolution": list(range(128, 225, 4)), "depth": [0, 1, 2],
             "blocks": {"InvertedResidual": {"expand_ratio": [3, 4, 6]}}},
            85, 3**16 * 3**4 * 25,
        ),
    ],
)  # fmt: skip
def test_the_papers_spaces(model, blocks, stages, space, modifications, variants) -> None:
    """Table 3 of the paper."""
    net = autotailor.compile(timm.create_model(model), space, name=model)
    assert kinds(net) == blocks
    assert [len(s.blocks) for s in net.stages] == stages
    assert net.space.num_modifications == modifications
    assert net.space.num_variants == variants
