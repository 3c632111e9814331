"""An Expand that spells out sizes goes where its readers broadcast anyway, and stays where one needs it."""

import pytest

from onnx_text import HEAD, KERNEL, model_of
from reference import assert_reads

STEM = "m = Conv <pads = [1, 1, 1, 1]> (x, kernel)  g = ReduceMean <keepdims = 1> (m, axes)"
WEIGHTS = {
    "kernel": KERNEL, "axes": [2, 3], "sizes": [1, 4, 8, 8], "more": [1, 1, 4, 8, 8], "one": [0],
    "gain": [[[[2.0]]]], "fc": [[1.0, -2.0, 3.0, -4.0]] * 5,
}  # fmt: skip


@pytest.mark.parametrize("kind", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("operands", ["e, m", "m, e"])
def test_an_expand_that_a_broadcasting_operator_reads_goes(kind: str, operands: str) -> None:
    graph = assert_reads(model_of(f"{STEM}  e = Expand (g, sizes)  t = {kind} ({operands})  {HEAD}", WEIGHTS))
    assert [node.kind for node in graph.nodes][:3] == ["Conv", "GlobalAveragePool", kind]


def test_an_expand_of_an_expand_leaves_the_inner_one() -> None:
    body = f"{STEM}  r = Expand (g, rows)  e = Expand (r, sizes)  t = Mul (m, e)  {HEAD}"
    graph = assert_reads(model_of(body, {**WEIGHTS, "rows": [1, 4, 8, 1]}))
    assert [node.kind for node in graph.nodes].count("Expand") == 1


NEEDED = {
    "a reader that does not broadcast": "e = Expand (g, sizes)  t = Exp (e)",
    "a reader that is not known to broadcast": "e = Expand (g, sizes)  t = Max (m, e)",
    "one of two readers": "e = Expand (g, sizes)  a = Mul (m, e)  b = Exp (e)  t = Add (a, b)",
    "a reader of itself alone": "e = Expand (g, sizes)  t = Mul (e, e)",
    "a reader whose other operand is a weight": "e = Expand (g, sizes)  t = Mul (e, gain)",
    "a reader whose other operand is as small": "h = Sigmoid (g)  e = Expand (g, sizes)  t = Mul (e, h)",
    "a reader whose other operand is an Expand": (
        "h = Sigmoid (g)  e = Expand (g, sizes)  d = Expand (h, sizes)  t = Mul (e, d)"
    ),
    "an axis that it adds": (
        "e = Expand (g, more)  a = Unsqueeze (m, one)  b = Mul (a, e)  t = ReduceMean <keepdims = 0> (b, one)"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", NEEDED)
def test_an_expand_stays_for(case: str) -> None:
    graph = assert_reads(model_of(f"{STEM}  {NEEDED[case]}  {HEAD}", WEIGHTS))
    assert "Expand" in {node.kind for node in graph.nodes}


def test_an_expand_that_is_the_output_stays() -> None:
    body = "m = Conv (x, kernel)  s = ReduceMean (m, all)  f = Flatten (s)  y = Expand (f, rows)"
    graph = assert_reads(model_of(body, {"kernel": KERNEL, "all": [1, 2, 3], "rows": [1, 4]}))
    assert graph.nodes[-1].kind == "Expand"
