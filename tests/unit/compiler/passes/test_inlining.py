"""Functions of a file are written out where they are called, or refused before they fill the memory."""

import onnx_ir as ir
import pytest

from autotailor.compiler.passes import inlining
from autotailor.compiler.passes.inlining import inline
from autotailor.ir.errors import GraphError
from onnx_text import kinds, model_of, read
from reference import run_passed

RELU = '<domain: "own", opset_import: ["" : 20]> F (a) => (b) { b = Relu (a) }'
NESTED = '<domain: "own", opset_import: ["" : 20, "own" : 1]> G (a) => (d) { c = own.F (a)  d = Neg (c) }'


def test_a_function_is_written_out_at_every_call() -> None:
    model = model_of("h = own.F (x)  n = Neg (h)  y = own.F (n)", functions=RELU, outputs="float[1, 3, 8, 8] y")
    passed = read(model)
    inline(passed)
    assert kinds(passed) == ["Relu", "Neg", "Relu"]
    assert not passed.functions
    run_passed(model, passed)


def test_functions_of_functions_are_written_out() -> None:
    model = model_of("h = own.G (x)  y = Exp (h)", functions=RELU + NESTED, outputs="float[1, 3, 8, 8] y")
    passed = read(model)
    inline(passed)
    assert kinds(passed) == ["Relu", "Neg", "Exp"]
    run_passed(model, passed)


def test_a_branch_that_calls_a_function_is_written_out() -> None:
    branches = "<then_branch = t () => (p) { p = own.F (x) }, else_branch = e () => (q) { q = Neg (x) }>"
    passed = read(model_of(f"y = If (yes) {branches}", {"yes": True}, functions=RELU))
    inline(passed)
    assert sorted(node.op_type for node in passed.graph.all_nodes()) == ["If", "Neg", "Relu"]


def test_a_function_that_calls_itself_is_refused() -> None:
    itself = '<domain: "own", opset_import: ["own" : 1]> F (a) => (b) { b = own.F (a) }'
    with pytest.raises(GraphError, match="graph g: its functions call each other"):
        inline(ir.from_proto(model_of("y = own.F (x)", functions=itself)))


def doubling(depth: int) -> str:
    """Functions f1, f2 ... of which each calls the one before it twice."""
    calls = ["b = Relu (a)", *(f"t = own.f{i} (a)  b = own.f{i} (t)" for i in range(depth))]
    head = '<domain: "own", opset_import: ["" : 20, "own" : 1]>'
    return "\n".join(f"{head} f{i} (a) => (b) {{ {call} }}" for i, call in enumerate(calls))


def test_functions_are_counted_before_they_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inlining, "MOST_NODES", 16)
    within = read(model_of("y = own.f4 (x)", functions=doubling(4)))
    inline(within)
    assert kinds(within) == ["Relu"] * 16
    with pytest.raises(GraphError, match="would become 17 nodes; the limit is 16"):
        inline(read(model_of("h = Neg (x)  y = own.f4 (h)", functions=doubling(4))))


def test_a_hundred_functions_of_each_other_are_refused_at_once() -> None:
    with pytest.raises(GraphError, match=r"would become 1\.27e\+30 nodes; the limit is 1,000,000"):
        inline(ir.from_proto(model_of("y = own.f100 (x)", functions=doubling(100))))
