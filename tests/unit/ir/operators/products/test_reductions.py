"""Reductions between two layers whose widths change, against onnxruntime."""

import pytest

from operator_cases import assert_all_forms_agree, case

CHANNELS, LAST = "axes = [1], keepdims = 1", "axes = [-1], keepdims = 1"
CASES = {
    "mean": case(f"y = ReduceMean <{CHANNELS}> (t)"),
    "absolute sum": case(f"y = ReduceL1 <{CHANNELS}> (t)"),
    "maximum": case(f"y = ReduceMax <{CHANNELS}> (t)"),
    "product": case(f"y = ReduceProd <{CHANNELS}> (t)"),
    "minimum": case(f"y = ReduceMin <{LAST}> (t)"),
    "sum of squares": case(f"y = ReduceSumSquare <{LAST}> (t)"),
    "log of sum of exponentials": case(f"y = ReduceLogSumExp <{LAST}> (t)"),
    "log of sum": case("e = Exp (t)  y = ReduceLogSum <axes = [2]> (e)"),
    "norm of a row": case(f"y = ReduceL2 <{CHANNELS}> (t)", row=True),
    "axes that go": case("y = ReduceMean <axes = [2, 3], keepdims = 0> (t)"),
    "sum, axes as an input": case("y = ReduceSum (t, axes)", axes=[2, 3]),
    "no axes": case("y = ReduceSum <noop_with_empty_axes = 1> (t)"),
}


@pytest.mark.parametrize("name", CASES)
def test_all_forms_agree_when_everything_shrinks_on_its_own(name: str) -> None:
    assert_all_forms_agree(CASES[name])
