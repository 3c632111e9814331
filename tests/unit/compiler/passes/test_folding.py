"""Constant folding: what nothing but constants determines is computed once; what nobody reads is gone."""

import numpy as np
import pytest

from autotailor.compiler.passes.folding import RANDOM, fold, tidy
from autotailor.ir.errors import GraphError
from onnx_text import constant, kinds, model_of, read
from reference import run_passed

CASES = {
    "Constant": ("two = Constant <value_floats = [2.0]> ()  y = Mul (x, two)", ["Mul"]),
    "Identity": ("same = Identity (x)  y = Relu (same)", ["Relu"]),
    "Dropout": ("kept = Dropout (x)  y = Relu (kept)", ["Relu"]),
    "arithmetic of weights": ("sum = Add (a, b)  gain = ReduceSum (sum)  y = Mul (x, gain)", ["Mul"]),
    "shapes": ("s = Shape (x)  zeros = ConstantOfShape (s)  y = Add (x, zeros)", ["Add"]),
    "one axis of a shape": (
        "s = Shape <start = 1, end = 2> (x)  whole = Concat <axis = 0> (one, s, minus)  y = Reshape (x, whole)",
        ["Reshape"],
    ),
    "several outputs": (
        "left, right = Split <axis = 1, num_outputs = 2> (a)  g = Sub (left, right)  y = Mul (x, g)",
        ["Mul"],
    ),
    "branch on a constant": (
        "y = If (yes) <then_branch = a () => (t) { t = Relu (x) }, else_branch = b () => (e) { e = Sigmoid (x) }>",
        ["Relu"],
    ),
    "dead code": ("lost = Sigmoid (x)  gone = Exp (lost)  y = Relu (x)", ["Relu"]),
}
WEIGHTS = {"a": np.arange(16.0).reshape(8, 2), "b": 1.0, "one": [1], "minus": [-1], "yes": np.array(True)}


@pytest.mark.parametrize("case", CASES)
def test_nothing_constant_is_computed_any_more(case: str) -> None:
    body, left = CASES[case]
    weights = {name: np.asarray(v, np.float32) if name in "ab" else v for name, v in WEIGHTS.items()}
    model = model_of(body, weights, outputs="float[n, c, h, w] y")
    passed = read(model)
    fold(passed)
    assert kinds(passed) == left
    run_passed(model, passed)


def test_what_several_outputs_held_are_weights() -> None:
    passed = read(model_of("left, right = Split <num_outputs = 2> (a)  y = Mul (x, right)", {"a": [1.0, 2.0]}))
    fold(passed)
    assert constant(passed.graph[0].inputs[1]) == [2.0]


def test_weights_that_nobody_reads_are_dropped() -> None:
    passed = read(model_of("y = Mul (x, a)", {"a": 2.0, "spare": np.zeros((100, 100))}))
    fold(passed)
    assert list(passed.graph.initializers) == ["a"]


@pytest.mark.parametrize("kind", RANDOM)
def test_random_numbers_are_not_drawn_while_compiling(kind: str) -> None:
    likes = {"Bernoulli": "a", "RandomNormalLike": "a", "RandomUniformLike": "a", "Multinomial": "a"}
    attributes = "" if kind in likes else "<shape = [1, 3]>"
    body = f"drawn = {kind} {attributes} ({likes.get(kind, '')})  f = Cast <to = 1> (drawn)  y = Mul (x, f)"
    passed = read(model_of(body, {"a": [[0.5, 0.5, 0.5]]}))
    fold(passed)
    assert kind in kinds(passed)


def test_what_the_image_says_is_not_folded() -> None:
    passed = read(model_of("least = ReduceMin (x)  left, right = Split <num_outputs = 2> (x)  y = Add (left, least)"))
    fold(passed)
    assert kinds(passed) == ["ReduceMin", "Split", "Add"]


def test_a_constant_that_cannot_be_computed_is_refused() -> None:
    body = "n, mean = LayerNormalization (w, gains)  y = Mul (x, n)"
    with pytest.raises(GraphError, match=r"graph g: its constants cannot be folded: .* shapes"):
        fold(read(model_of(body, {"w": [1.0, 2.0], "gains": [4.0, 1.0, 2.0]})))


def test_tidying_keeps_what_is_computed_of_constants() -> None:
    passed = read(model_of("gain = Add (a, a)  same = Identity (x)  y = Mul (same, gain)  dead = Relu (x)", {"a": 2.0}))
    tidy(passed)
    assert kinds(passed) == ["Add", "Mul"]
