"""The registry of operator rules, and broadcasting of dimensions."""

from __future__ import annotations

import numpy as np
import pytest

from autotailor.compiler.normalise import normalise
from autotailor.compiler.parser import parse
from autotailor.ir.operators.rule import OperatorRule, Registry, rules
from autotailor.ir.propagation import propagate
from onnx_text import HEAD, model_of, read


def test_every_rule_names_distinct_kinds() -> None:
    assert len(rules.kinds) == len(set(rules.kinds)) > 30


def test_a_second_rule_for_a_kind_is_refused() -> None:
    class First(OperatorRule):
        kinds = ("Relu", "Elu")

    class Second(OperatorRule):
        kinds = ("Elu",)

    registry = Registry()
    registry.register(First)
    with pytest.raises(ValueError, match="two operator rules for Elu"):
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
