"""Pooling between two layers whose widths change, against onnxruntime."""

from dataclasses import replace

import pytest

from atoms import every_atom
from autotailor.ir.errors import GraphError
from operator_cases import SIDE, assert_all_forms_agree, case

THREE = "kernel_shape = [3, 3]"
HALVED = f"{THREE}, strides = [2, 2]"
CASES = {
    "maximum": case(f"y = MaxPool <{HALVED}, pads = [1, 1, 1, 1]> (t)"),
    "maximum, dilated": case(f"y = MaxPool <{THREE}, dilations = [2, 2]> (t)"),
    "maximum, uneven": case("y = MaxPool <kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 0, 1]> (t)"),
    "maximum, ceil": case(f"y = MaxPool <{HALVED}, ceil_mode = 1> (t)"),
    "maximum, ceil with pads": case(f"y = MaxPool <{HALVED}, pads = [1, 1, 1, 1], ceil_mode = 1> (t)"),
    "maximum, ceil behind the image": case(
        f"y = MaxPool <{THREE}, strides = [3, 3], pads = [1, 1, 1, 1], ceil_mode = 1> (t)"
    ),
    "average": case(f"y = AveragePool <{THREE}, pads = [1, 1, 1, 1]> (t)"),
    "average, uneven": case("y = AveragePool <kernel_shape = [2, 2], pads = [0, 0, 1, 1]> (t)"),
    "average, pads included": case(f"y = AveragePool <{HALVED}, pads = [1, 0, 1, 0], count_include_pad = 1> (t)"),
    "average, ceil": case(f"y = AveragePool <{HALVED}, ceil_mode = 1> (t)"),
    "average, ceil and uneven": case(f"y = AveragePool <{HALVED}, pads = [0, 1, 1, 0], ceil_mode = 1> (t)"),
    "average, dilated": case(
        "y = AveragePool <kernel_shape = [2, 2], dilations = [2, 3], pads = [1, 1, 1, 1]> (t)", opset=19
    ),
    "norm": case(f"y = LpPool <{HALVED}, pads = [1, 1, 1, 1], p = 3> (t)"),
    "global average": case("y = GlobalAveragePool (t)"),
    "global maximum": case("y = GlobalMaxPool (t)"),
    "global norm": case("y = GlobalLpPool <p = 3> (t)"),
}


@pytest.mark.parametrize("name", CASES)
def test_all_forms_agree_when_everything_shrinks_on_its_own(name: str) -> None:
    assert_all_forms_agree(CASES[name])


def test_windows_behind_the_image_are_refused() -> None:
    pool = case("y = MaxPool <kernel_shape = [2, 2], strides = [2, 2], pads = [1, 1, 1, 1], ceil_mode = 1> (t)")
    with pytest.raises(GraphError, match="its last window starts behind the image"):
        every_atom(replace(pool, side=SIDE + 1).model(), smallest_image=6)
