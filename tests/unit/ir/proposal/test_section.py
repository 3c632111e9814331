"""The section that describes a space."""

import pytest

import autotailor
import networks


@pytest.mark.parametrize(
    "space",
    [
        {},
        {"divisor": 4, "resolution": [24], "skip": ["block1.*"]},
        {"depth": [0, 1], "width": [0.5], "divisor": 4},
        {"depth": [0, 1, 2], "width": {"stage1": [0.5], "*": [0.25, 0.5]}, "divisor": 4},
        {"depth": {"stage1": [0, 1], "*": [0, 2]}, "width": {"stem": [0.5], "stage2": [0.5]}, "divisor": 4},
        {"blocks": {"block3": {"expand_ratio": [0.25]}}},
        {"scale": [0.25, 0.5], "divisor": 4},
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
