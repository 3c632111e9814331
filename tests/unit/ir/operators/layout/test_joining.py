"""Concatenations between two layers whose widths change, against onnxruntime."""

import pytest

from operator_cases import CHANNELS, assert_all_forms_agree, case

C, POINT = CHANNELS, (CHANNELS, CHANNELS, 1, 1)
CASES = {
    "channels": case("a = Conv (t, k)  y = Concat <axis = 1> (a, t)", k=POINT),
    "channels from the end": case("a = Conv (t, k)  y = Concat <axis = -3> (t, a)", k=POINT),
    "rows of pixels": case("a = Relu (t)  y = Concat <axis = 2> (t, a)"),
    "constant channels": case("y = Concat <axis = 1> (t, w)", w=(1, 3, C, C)),
    "twice the same": case("y = Concat <axis = 1> (t, t)"),
}


@pytest.mark.parametrize("name", CASES)
def test_all_forms_agree_when_everything_shrinks_on_its_own(name: str) -> None:
    assert_all_forms_agree(CASES[name])
