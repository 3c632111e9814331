"""Arithmetic, comparison and selection between two layers whose widths change, against onnxruntime."""

import pytest

from operator_cases import CHANNELS, assert_all_forms_agree, case

VECTOR, ONE = (CHANNELS, 1, 1), (1,)
CASES = {
    "add": case("y = Add (t, w)", w=VECTOR),
    "subtract from a constant": case("y = Sub (w, t)", w=VECTOR),
    "multiply by a number": case("y = Mul (t, half)", half=0.5),
    "divide": case("e = Exp (t)  y = Div (t, e)"),
    "power": case("y = Pow (t, two)", two=[2.0]),
    "slopes": case("y = PRelu (t, w)", w=VECTOR),
    "one slope": case("y = PRelu (t, w)", w=ONE),
    "maximum of three": case("y = Max (t, w, v)", w=VECTOR, v=ONE),
    "minimum": case("y = Min (t, w)", w=(1, *VECTOR)),
    "sum of three": case("y = Sum (t, w, v)", w=VECTOR, v=ONE),
    "mean of three": case("y = Mean (t, w, v)", w=VECTOR, v=ONE),
    "selection": case("q = Greater (t, w)  y = Where (q, t, v)", w=VECTOR, v=ONE),
    "selection by two": case(
        "l = LessOrEqual (t, w)  g = GreaterOrEqual (t, v)  q = Xor (l, g)  y = Where (q, t, v)", w=VECTOR, v=ONE
    ),
    "two layers": case("b = Conv (t, k)  y = Add (b, t)", k=(CHANNELS, CHANNELS, 1, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_all_forms_agree_when_everything_shrinks_on_its_own(name: str) -> None:
    assert_all_forms_agree(CASES[name])
