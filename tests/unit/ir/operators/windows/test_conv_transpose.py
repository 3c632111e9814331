"""Transposed convolutions between two layers whose widths change, against onnxruntime."""

import pytest

from operator_cases import CHANNELS, assert_all_forms_agree, case

C = CHANNELS
CASES = {
    "output padding": case(
        "y = ConvTranspose <strides = [2, 2], pads = [1, 1, 1, 1], output_padding = [1, 1]> (t, w, b)",
        w=(C, 8, 3, 3), b=(8,),
    ),
    "uneven": case("y = ConvTranspose <strides = [2, 3], pads = [0, 1, 1, 0]> (t, w)", w=(C, 8, 2, 3)),
    "grouped": case("y = ConvTranspose <group = 4, dilations = [2, 2]> (t, w, b)", w=(C, 2, 2, 2), b=(8,)),
    "depthwise": case("y = ConvTranspose <group = 12, strides = [2, 2]> (t, w, b)", w=(C, 1, 2, 2), b=(C,)),
    "given output": case("y = ConvTranspose <strides = [2, 2], output_shape = [24, 24]> (t, w)", w=(C, 8, 3, 3)),
    "wider than the sum": case("y = ConvTranspose <strides = [2, 2], output_shape = [26, 26]> (t, w)", w=(C, 8, 3, 3)),
    "same": case('y = ConvTranspose <strides = [2, 3], auto_pad = "SAME_UPPER"> (t, w)', w=(C, 8, 3, 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_all_forms_agree_when_everything_shrinks_on_its_own(name: str) -> None:
    assert_all_forms_agree(CASES[name])
