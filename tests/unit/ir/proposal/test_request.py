"""What a ``space`` section may look like, and what it asks for."""

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
        (
            {"blocks": {"Bottleneck": {"expand_ratio": [0.5, -1]}}},
            r"expand_ratio: expected numbers above 0, not \[0.5, -1\]",
        ),
        ({"blocks": {"Bottleneck": {"expand_ratio": [float("nan")]}}}, "expected numbers above 0"),
        ({"width": [0.5, float("nan")]}, r"must lie in \(0, 1\]"),
        ({"width": {"stage1": [1.5]}}, r"must lie in \(0, 1\]"),
        ({"scale": [0.5, 1.5]}, r"space.scale: ratios \[0.5, 1.5\] must lie in \(0, 1\]"),
        ({"scale": [0.5], "width": [0.5]}, "leave one of both out"),
        ({"depth": {"stage1": [-1, 0]}}, r"depth: choices \[-1, 0\] count removed blocks"),
        ({"resolution": {"from": 1, "to": 10**15, "step": 1}}, "more than 4096 numbers; give a larger step"),
        ({"skip": 3}, "space.skip: expected a list of patterns"),
        ({"skip": "stem.*"}, "space.skip: expected a list of patterns"),
        (["depth"], "space: expected names"),
    ],
    ids=str,
)
def test_other_forms_are_refused(space: object, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        SpaceRequest.from_config(space)  # type: ignore[arg-type]


def test_what_is_not_listed_stays_fixed() -> None:
    assert SpaceRequest.from_config({}) == SpaceRequest(8, (), {"*": ()}, {"*": ()}, {}, {}, ())
    assert len(autotailor.compile(networks.make("resnet"), {}, resolution=32).space) == 0
    assert SpaceRequest.from_config(None).resolution is None
