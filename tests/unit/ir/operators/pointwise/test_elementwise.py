"""Functions of one number between two layers whose widths change, against onnxruntime."""

import pytest
from onnx import TensorProto

from operator_cases import assert_all_forms_agree, case

KINDS = ("Erf", "Exp", "Neg", "Abs", "Sign", "Floor", "Ceil", "Round", "Sin", "Cos", "Identity")
CASES = {
    **{kind: case(f"y = {kind} (t)") for kind in KINDS},
    "Log": case("e = Exp (t)  y = Log (e)"),
    "Sqrt": case("e = Abs (t)  y = Sqrt (e)"),
    "Reciprocal": case("e = Exp (t)  y = Reciprocal (e)"),
    "cast": case(f"y = Cast <to = {TensorProto.FLOAT}> (t)"),
    "cast to whole numbers and back": case(
        f"i = Cast <to = {TensorProto.INT64}> (t)  y = Cast <to = {TensorProto.FLOAT}> (i)"
    ),
    "not": case(f"g = Greater (t, zero)  q = Not (g)  y = Cast <to = {TensorProto.FLOAT}> (q)", zero=0.0),
    "clip": case("y = Clip (t, low, high)", low=-0.5, high=0.5),
    "clip from below": case("y = Clip (t, low)", low=-0.5),
    "clip from above": case("y = Clip (t, , high)", high=0.5),
    "no rule": case("y = Atan (t)", static="Atan", resizes=False, shrinks=False),
}


@pytest.mark.parametrize("name", CASES)
def test_all_forms_agree_when_everything_shrinks_on_its_own(name: str) -> None:
    assert_all_forms_agree(CASES[name])
