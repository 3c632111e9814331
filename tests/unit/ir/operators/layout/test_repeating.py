"""Repetitions between two layers whose widths change, against onnxruntime."""

import pytest

from operator_cases import CHANNELS, SIDE, assert_all_forms_agree, case

CASES = {
    "expand to its own shape": case("y = Expand (t, shape)", shape=[1, CHANNELS, SIDE, SIDE]),
    "expand axes of one": case("p = GlobalAveragePool (t)  y = Expand (p, shape)", shape=[1, CHANNELS, 4, 5]),
    "expand to a new axis": case("e = Expand (t, shape)  y = Squeeze (e, new)", shape=[1, 1, 1, SIDE, SIDE], new=[0]),
    "tile": case("y = Tile (t, repeats)", repeats=[1, 2, 1, 1]),
    "tile an image": case("y = Tile (t, repeats)", repeats=[1, 1, 2, 3]),
}


@pytest.mark.parametrize("name", CASES)
def test_all_forms_agree_when_everything_shrinks_on_its_own(name: str) -> None:
    assert_all_forms_agree(CASES[name])
