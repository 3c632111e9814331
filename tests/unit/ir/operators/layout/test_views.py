"""Views between two layers whose widths change, against onnxruntime."""

import pytest

from operator_cases import assert_all_forms_agree, case

CASES = {
    "flatten": case("y = Flatten <axis = 1> (t)", resizes=False),
    "flatten from the end": case("p = GlobalMaxPool (t)  y = Flatten <axis = -3> (p)"),
    "reshape to a row": case("y = Reshape (t, shape)", resizes=False, shape=[0, -1]),
    "reshape to tokens": case("r = Reshape (t, tokens)  y = ReduceMax <axes = [2]> (r)", tokens=[0, 0, -1]),
    "reshape to heads": case("y = Reshape (t, heads)", row=True, heads=[1, 3, 4, 1]),
    "a new axis": case("u = Unsqueeze (t, axes)  s = Squeeze (u, axes)  y = Sigmoid (s)", axes=[2]),
    "axes from the end": case("u = Unsqueeze (t, axes)  s = Squeeze (u, axes)  y = Sigmoid (s)", axes=[-1, 2]),
    "squeezed map": case("p = GlobalAveragePool (t)  y = Squeeze (p, axes)", axes=[2, 3]),
    "dropout": case("y = Dropout (t)"),
}


@pytest.mark.parametrize("name", CASES)
def test_all_forms_agree_when_everything_shrinks_on_its_own(name: str) -> None:
    assert_all_forms_agree(CASES[name])
