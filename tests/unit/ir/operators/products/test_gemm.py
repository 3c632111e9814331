"""Matrix products between two layers whose widths change, against onnxruntime."""

import pytest

from autotailor.ir.feature import OPERANDS, OperatorFeature, freeze_attributes
from autotailor.ir.operators.rule import rules
from operator_cases import CHANNELS, assert_all_forms_agree, case

C = CHANNELS
CASES = {
    "gemm": case("y = Gemm <transB = 1, alpha = 0.5, beta = 2.0> (t, w, b)", row=True, w=(7, C), b=(7,)),
    "gemm, one shift": case("y = Gemm (t, w, b)", row=True, w=(C, 7), b=(1,)),
    "gemm, shift as a matrix": case("y = Gemm (t, w, b)", row=True, w=(C, 7), b=(1, 7)),
    "matmul": case("y = MatMul (t, w)", row=True, w=(C, 7)),
    "matmul of tokens": case(
        "q = Transpose <perm = [0, 2, 3, 1]> (t)  m = MatMul (q, w)  y = Transpose <perm = [0, 3, 1, 2]> (m)", w=(C, 7)
    ),
    "matmul of activations": case("r = Relu (t)  v = Transpose <perm = [0, 1, 3, 2]> (r)  y = MatMul (t, v)"),
    "constant on the left": case(
        "r = Reshape (t, tokens)  m = MatMul (w, r)  y = ReduceMean <axes = [2]> (m)", w=(7, C), tokens=[1, C, -1]
    ),
    "vector": case(
        "p = ReduceMean <axes = [2, 3], keepdims = 0> (t)  v = MatMul (p, w)  y = Unsqueeze (v, end)",
        w=(C,), end=[1], static="MatMul", shrinks=False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_all_forms_agree_when_everything_shrinks_on_its_own(name: str) -> None:
    assert_all_forms_agree(CASES[name])


@pytest.mark.parametrize(
    ("inputs", "weights"), [(((2, 5, 7),), ((7, 3),)), (((2, 5, 7), (2, 7, 3)), ()), (((2, 5, 7), (7, 3)), ((3,),))]
)
def test_macs_are_rows_times_columns_times_what_is_summed(
    inputs: tuple[tuple[int, ...], ...], weights: tuple[tuple[int, ...], ...]
) -> None:
    rule = rules.find("MatMul")
    assert rule is not None
    assert rule.macs(OperatorFeature("MatMul", inputs, ((2, 5, 3),), weights)) == 2 * 5 * 3 * 7


def test_macs_of_a_constant_on_the_left_sum_over_its_columns() -> None:
    rule = rules.find("MatMul")
    assert rule is not None
    left = OperatorFeature("MatMul", ((1, 7, 3),), ((1, 5, 3),), ((5, 7),), freeze_attributes({OPERANDS: "wx"}))
    assert rule.macs(left) == 5 * 3 * 7
