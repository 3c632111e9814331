"""Convolutions between two layers whose widths change, against onnxruntime."""

import pytest

from autotailor.ir.feature import OperatorFeature
from autotailor.ir.operators.rule import rules
from operator_cases import CHANNELS, assert_all_forms_agree, case

C = CHANNELS
CASES = {
    "strided": case("y = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (t, w, b)", w=(6, C, 3, 3), b=(6,)),
    "uneven pads": case("y = Conv <pads = [0, 1, 2, 1]> (t, w)", w=(6, C, 3, 3)),
    "dilated": case("y = Conv <dilations = [2, 2]> (t, w)", w=(6, C, 3, 3)),
    "grouped": case("y = Conv <group = 4, pads = [1, 1, 1, 1]> (t, w, b)", w=(8, 3, 3, 3), b=(8,)),
    "depthwise": case("y = Conv <group = 12, dilations = [2, 2]> (t, w, b)", w=(C, 1, 3, 3), b=(C,)),
    "depthwise, twice as wide": case("y = Conv <group = 12, strides = [2, 2]> (t, w)", w=(2 * C, 1, 3, 3)),
    "cropped kernel": case(
        "y = Conv <kernel_shape = [5, 5], pads = [2, 2, 2, 2], strides = [2, 2]> (t, w)", w=(6, C, 5, 5)
    ),
    "cropped and dilated": case(
        "y = Conv <kernel_shape = [3, 3], dilations = [2, 2], pads = [2, 2, 2, 2]> (t, w)", w=(6, C, 3, 3)
    ),
    "one axis": case(
        "r = Reshape (t, rows)  c = Conv <pads = [1, 1]> (r, w)  y = GlobalAveragePool (c)",
        rows=[1, C, -1], w=(6, C, 3),
    ),
    "three axes": case("u = Unsqueeze (t, two)  c = Conv (u, w)  y = Squeeze (c, two)", two=[2], w=(6, C, 1, 3, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_all_forms_agree_when_everything_shrinks_on_its_own(name: str) -> None:
    assert_all_forms_agree(CASES[name])


def test_computed_weights_count_like_constant_ones() -> None:
    x, w, y = (1, 8, 9, 9), (6, 4, 3, 3), (1, 6, 7, 7)
    rule = rules.find("Conv")
    assert rule is not None
    computed = OperatorFeature("Conv", (x, w), (y,), ((6,),))
    assert rule.macs(computed) == rule.macs(OperatorFeature("Conv", (x,), (y,), (w, (6,)))) == 6 * 4 * 9 * 49
