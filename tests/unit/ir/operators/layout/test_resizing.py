"""Interpolation, and pixels as channels, between two layers whose widths change, against onnxruntime."""

from typing import Any

import pytest

from autotailor.ir.feature import freeze_attributes
from autotailor.ir.graph import Node
from autotailor.ir.operators.layout.resizing import ResizeRule
from operator_cases import CHANNELS, SIDE, assert_all_forms_agree, case

MODE = "coordinate_transformation_mode"
BY_SCALES, BY_SIZES = "(t, , scales)", "(t, , , sizes)"
CASES = {
    "nearest": case(f'y = Resize <mode = "nearest", nearest_mode = "floor"> {BY_SCALES}', scales=[1.0, 1, 2, 2]),
    "nearest, asymmetric": case(
        f'y = Resize <mode = "nearest", {MODE} = "asymmetric", nearest_mode = "floor"> {BY_SCALES}',
        scales=[1.0, 1, 2, 3],
    ),
    "nearest, rounded up": case(
        f'y = Resize <mode = "nearest", nearest_mode = "ceil"> {BY_SCALES}', scales=[1.0, 1, 1.5, 1.5]
    ),
    "linear": case(f'y = Resize <mode = "linear"> {BY_SCALES}', scales=[1.0, 1, 2, 2]),
    "linear, half as large": case(
        f'y = Resize <mode = "linear", {MODE} = "pytorch_half_pixel"> {BY_SCALES}', scales=[1.0, 1, 0.5, 0.5]
    ),
    "linear, corners aligned": case(
        f'y = Resize <mode = "linear", {MODE} = "align_corners"> {BY_SCALES}', scales=[1.0, 1, 2, 2]
    ),
    "linear, symmetric": case(
        f'y = Resize <mode = "linear", {MODE} = "half_pixel_symmetric"> {BY_SCALES}', opset=19, scales=[1.0, 1, 2, 2]
    ),
    "cubic": case(f'y = Resize <mode = "cubic"> {BY_SCALES}', scales=[1.0, 1, 1.5, 2]),
    "cubic, outside excluded": case(
        f'y = Resize <mode = "cubic", cubic_coeff_a = -0.5, exclude_outside = 1> {BY_SCALES}', scales=[1.0, 1, 2, 2]
    ),
    "filtered, outside excluded": case(
        f'y = Resize <mode = "linear", antialias = 1, exclude_outside = 1> {BY_SCALES}',
        opset=18, scales=[1.0, 1, 0.5, 1 / 3],
    ),
    "filtered": case(
        f'y = Resize <mode = "linear", antialias = 1> {BY_SCALES}', opset=18, scales=[1.0, 1, 0.5, 1.5]
    ),
    "cubic and filtered": case(
        f'y = Resize <mode = "cubic", antialias = 1> {BY_SCALES}', opset=18, scales=[1.0, 1, 0.5, 0.25]
    ),
    "sizes": case(f'y = Resize <mode = "linear"> {BY_SIZES}', sizes=[1, CHANNELS, 2 * SIDE, 2 * SIDE]),
    "sizes that no scale makes": case(f'y = Resize <mode = "linear"> {BY_SIZES}', sizes=[1, CHANNELS, 7, 7],
                                      resizes=False),
    "sizes behind empty inputs": case('y = Resize <mode = "linear"> (t, none, none, sizes)',
                                      none=[], sizes=[1, CHANNELS, 6, 6]),
    "axes": case('y = Resize <mode = "linear", axes = [2, 3]> (t, , scales)', opset=18, scales=[2.0, 2.0]),
    "channels to pixels, DCR": case('y = DepthToSpace <blocksize = 2, mode = "DCR"> (t)'),
    "channels to pixels, CRD": case('y = DepthToSpace <blocksize = 2, mode = "CRD"> (t)'),
    "pixels to channels": case("y = SpaceToDepth <blocksize = 3> (t)"),
    "widths to channels": case(
        "r = Transpose <perm = [0, 2, 3, 1]> (t)  s = SpaceToDepth <blocksize = 2> (r)  y = Transpose "
        "<perm = [0, 3, 1, 2]> (s)",
        shrinks=False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("said", "opset"),
    [
        ({}, 17),
        ({"axes": (2, 3)}, 18),
        ({"antialias": 0}, 18),
        ({"keep_aspect_ratio_policy": "not_larger"}, 18),
        ({MODE: "half_pixel_symmetric"}, 19),
    ],
)
def test_a_resize_is_written_at_the_first_opset_that_has_its_options(said: dict[str, Any], opset: int) -> None:
    assert ResizeRule().opset(Node("r", "Resize", ("x",), ("y",), freeze_attributes(said))) == opset


@pytest.mark.parametrize("name", CASES)
def test_all_forms_agree_when_everything_shrinks_on_its_own(name: str) -> None:
    assert_all_forms_agree(CASES[name])
