"""What a ``space`` section may look like, and what it asks for."""

from __future__ import annotations

import pytest

import autotailor
import networks
from autotailor.ir.errors import SpaceError
from autotailor.ir.proposal.request import SpaceRequest


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"depths": [0, 1]}, r"unknown keys \['depths'\]; known are"),
        ({"divisor": 0}, "space.divisor: expected an integer of at least 1, not 0"),
        ({"divisor": "eight"}, "space.divisor"),
        ({"resolution": 128}, "space.resolution: expected a list of integers, not 128"),
        ({"resolution": [128.5]}, "space.resolution"),
        ({"depth": ["a"]}, "space.depth: expected a list of integers"),
        ({"depth": {"stage1": 1}}, "space.depth"),
        ({"width": "wide"}, "space.width: expected a list of numbers, not 'wide'"),
        ({"width": [True]}, "space.width"),
        ({"blocks": ["Bottleneck"]}, "space.blocks: expected names with their choices"),
        ({"blocks": {"Bottleneck": [0.5]}}, "space.blocks.Bottleneck: expected names"),
        ({"blocks": {"Bottleneck": {"expand_ratio": 0.5}}}, "space.blocks.Bottleneck.expand_ratio: expected a list"),
        ({"skip": "stem.*"}, "space.skip: expected a list of patterns"),
        (["depth"], "space: expected names"),
    ],
    ids=str,
)
def test_other_forms_are_refused(space: object, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        SpaceRequest.from_config(space)  # type: ignore[arg-type]


def test_what_is_not_listed_stays_fixed() -> None:
    assert SpaceRequest.from_config({}) == SpaceRequest(8, (), {"*": ()}, {"*": ()}, {}, ())
    assert len(autotailor.compile(networks.make("resnet"), {}, resolution=32).space) == 0
    assert SpaceRequest.from_config(None).resolution is None


def test_choices_by_stage() -> None:
    space = {"depth": {"stage1": [0, 1], "*": [0, 1, 2]}, "width": {"stage2": [0.5]}, "divisor": 4}
    net = autotailor.compile(networks.make("resnet"), space, resolution=32)
    assert {v.name: v.choices for v in net.space} == {
        "stage1.depth": (0, 1), "stage2.depth": (0, 1, 2), "stage2.width": (0.5, 1.0),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"depth": {"stage1": [0, 2]}}, "of stage1 at most 1 of 2 blocks can be removed"),
        ({"depth": {"stage3": [0, 1]}}, r"depth names \['stage3'\]; the network has \['stage1', 'stage2'\]"),
        ({"width": {"tail": [0.5]}}, r"width names \['tail'\]; the network has \['stem', 'stage1', 'stage2', 'head'\]"),
    ],
)
def test_choices_for_a_named_stage_must_be_legal(space: dict[str, object], message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        autotailor.compile(networks.make("resnet"), space, resolution=32)


@pytest.mark.parametrize(
    "space",
    [
        {},
        {"divisor": 4, "resolution": [24], "skip": ["block1.*"]},
        {"depth": [0, 1], "width": [0.5], "divisor": 4},
        {"depth": [0, 1, 2], "width": {"stage1": [0.5], "*": [0.25, 0.5]}, "divisor": 4},
        {"depth": {"stage1": [0, 1], "*": [0, 2]}, "width": {"stem": [0.5], "stage2": [0.5]}, "divisor": 4},
        {"blocks": {"block3": {"expand_ratio": [0.25]}}},
        {"blocks": {"Bottleneck": {"expand_ratio": [0.125, 0.25]}, "block3": {"expand_ratio": []}}},
        None,
    ],
    ids=str,
)
def test_a_section_describes_its_space(space: dict[str, object] | None) -> None:
    net = autotailor.compile(networks.make("resnet"), space, resolution=32)
    section = net.space_section()
    assert autotailor.compile(networks.make("resnet"), section, resolution=32).space.variables == net.space.variables


def test_a_section_is_as_short_as_it_can_be() -> None:
    space = {"divisor": 4, "depth": {"stage2": [0, 1, 2], "*": [0, 1]}, "width": [0.5, 1.0]}
    blocks = {"Bottleneck": {"expand_ratio": [0.25, 0.5]}, "block3": {"expand_ratio": [0.125, 0.5]}}
    net = autotailor.compile(networks.make("resnet"), {**space, "blocks": blocks}, resolution=32)
    assert net.space_section() == {**space, "blocks": blocks}
