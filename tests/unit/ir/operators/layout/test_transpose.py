"""Axes that change places between two layers whose widths change, against onnxruntime."""

import pytest

from operator_cases import assert_all_forms_agree, case

BACK = "y = Transpose <perm = [0, 3, 1, 2]> (r)"
CASES = {
    "channels last and back": case(f"q = Transpose <perm = [0, 2, 3, 1]> (t)  r = Relu (q)  {BACK}"),
    "rows and columns": case("y = Transpose <perm = [0, 1, 3, 2]> (t)"),
    "channels shuffled": case(
        "g = Reshape (t, groups)  s = Transpose <perm = [0, 2, 1, 3, 4]> (g)  y = Reshape (s, whole)",
        groups=[1, 3, 4, 12, 12], whole=[1, 12, 12, 12],
    ),
    "no order": case(
        "o = Unsqueeze (t, front)  q = Transpose (o)  k = Squeeze (q, back)  y = Transpose <perm = [3, 2, 1, 0]> (k)",
        front=[0], back=[4],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_all_forms_agree_when_everything_shrinks_on_its_own(name: str) -> None:
    assert_all_forms_agree(CASES[name])
