"""The registry of operator rules, and broadcasting of dimensions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import autotailor
import networks
from autotailor.compiler.normalise import normalise
from autotailor.compiler.parser import parse
from autotailor.ir.errors import GraphError
from autotailor.ir.graph import Node
from autotailor.ir.operators.pointwise.elementwise import ElementwiseRule
from autotailor.ir.operators.rule import Deduction, Dimensions, OperatorRule, Registry, rules
from autotailor.ir.propagation import propagate
from onnx_text import HEAD, model_of, read


def test_every_rule_names_distinct_kinds() -> None:
    assert len(rules.kinds) == len(set(rules.kinds)) > 30


class Complete(OperatorRule):
    """A rule that has everything but its kinds."""

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        return [deduction.dimensions(node.inputs[0])]

    def call(self, node: Node, arguments: Sequence[Any]) -> Any:
        return arguments[0]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (object, "object: expected a class that derives from OperatorRule"),
        (Complete(), "expected a class that derives from OperatorRule"),
        (type("Mine", (OperatorRule,), {"kinds": ("Mine",)}), "Mine: it lacks call and deduce; define what is missing"),
        (type("Mine", (ElementwiseRule,), {"kinds": ("Mine",)}), "Mine: it lacks call; define"),
        (type("Mine", (Complete,), {}), r"Mine: kinds is \(\), expected a tuple"),
        (
            type("Mine", (Complete,), {"kinds": "Mine"}),
            "Mine: kinds is 'Mine', expected a tuple of ONNX operator types",
        ),
    ],
)
def test_a_rule_that_could_not_be_used_is_refused_when_it_is_registered(rule: Any, words: str) -> None:
    registry = Registry()
    with pytest.raises(GraphError, match=f"operator rule .*{words}"):
        registry.register(rule)
    assert registry.kinds == ()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            {"applies": lambda self, node, deduction: True},
            "applies returned True .* or an empty text where the rule holds",
        ),
        (
            {"deduce": lambda self, node, deduction: None},
            "deduce returned NoneType .* one tuple of dimensions for each",
        ),
        ({"deduce": lambda self, node, deduction: deduction.dimensions(node.inputs[0])}, "deduce returned tuple"),
    ],
)
def test_an_answer_of_another_form_is_named_with_its_rule(
    body: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(rules._rules, "Relu", type("Mine", (Complete,), body)())
    with pytest.raises(GraphError, match=f"operator rule Mine: {words}"):
        autotailor.compile(networks.make("resnet"), resolution=32)


def test_a_second_rule_for_a_kind_is_refused() -> None:
    class First(Complete):
        kinds = ("Relu", "Elu")

    class Second(Complete):
        kinds = ("Selu", "Elu")

    registry = Registry()
    registry.register(First)
    with pytest.raises(GraphError, match=r"two operator rules for Elu: .*First and .*Second; keep one"):
        registry.register(Second)
    assert isinstance(registry.find("Elu"), First)
    assert registry.find("Selu") is None


@pytest.mark.parametrize(
    "shape", [(4, 1, 1), (1, 4, 1, 1), (1,), (), (8, 8), (4, 8, 1), (1, 1, 1, 8)], ids=lambda shape: str(list(shape))
)
def test_operands_broadcast_as_those_of_numpy(shape: tuple[int, ...]) -> None:
    """Axes that NumPy lines up are one dimension; axes of one stay one, and couple nothing."""
    rng = np.random.default_rng(0)
    weights = {"k": rng.normal(size=(4, 3, 1, 1)), "w": rng.normal(size=shape), "fc": rng.normal(size=(5, 4))}
    model = model_of(f"c = Conv (x, k)  t = Add (w, c)  {HEAD}", weights)
    dimensions = propagate(parse(normalise(read(model)), "sum")).dimensions
    image, vector, result = dimensions["c"], dimensions["w"], dimensions["t"]
    assert tuple(axis.meta for axis in result) == np.broadcast_shapes((1, 4, 8, 8), shape)
    assert result == image
    for mine, axis in zip(vector[::-1], result[::-1], strict=False):
        assert mine.meta == 1 or mine == axis
