"""Pads between two layers whose widths change, against onnxruntime."""

import pytest

from operator_cases import assert_all_forms_agree, case

CASES = {
    "constant": case("y = Pad (t, pads, value)", pads=[0, 0, 1, 0, 0, 0, 2, 3], value=0.5),
    "reflected": case('y = Pad <mode = "reflect"> (t, pads)', pads=[0, 0, 1, 1, 0, 0, 1, 1]),
    "edges": case('y = Pad <mode = "edge"> (t, pads)', pads=[0, 0, 0, 1, 0, 0, 2, 0]),
    "edges of the last axis": case('y = Pad <mode = "edge"> (t, pads)', pads=[0, 0, 0, 1, 0, 0, 0, 1]),
    "wrapped": case('y = Pad <mode = "wrap"> (t, pads)', opset=19, pads=[0, 0, 1, 1, 0, 0, 1, 1]),
    "channels": case("y = Pad (t, pads)", pads=[0, 2, 0, 0, 0, 3, 0, 0]),
    "axes": case("y = Pad (t, pads, , axes)", opset=18, pads=[1, 2, 3, 4], axes=[2, -1]),
    "cropped": case("y = Pad (t, pads)", pads=[0, 0, -1, 0, 0, 0, 0, -1]),
    "channels cut off": case(
        "y = Pad (t, pads)", pads=[0, -1, 0, 0, 0, 0, 0, 0], static="Pad", resizes=False, shrinks=False
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_all_forms_agree_when_everything_shrinks_on_its_own(name: str) -> None:
    assert_all_forms_agree(CASES[name])
