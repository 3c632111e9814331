"""Arithmetic, comparison and selection with broadcasting.

Add of ``[1, c, h, w]`` and ``[1, c', h, w]`` couples c with c': the two sides of a residual sum change together. An
axis of one broadcasts and couples nothing. A constant operand is a weight whose axes follow the other side.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from autotailor.ir.feature import Attributes
from autotailor.ir.graph import Node
from autotailor.ir.operators.rule import Deduction, Dimensions, OperatorRule, Tensor, broadcast, register


def _fold(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    return lambda *operands: functools.reduce(function, operands)


def _divide(a: Tensor, b: Tensor) -> Tensor:
    """Integers are divided as integers."""
    return torch.div(a, b) if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc")


_OPERATORS: dict[str, Callable[..., Tensor]] = {
    "Add": torch.add,
    "Sub": torch.sub,
    "Mul": torch.mul,
    "Div": _divide,
    "Pow": lambda a, b: torch.pow(a, b).to(a.dtype),
    "PRelu": lambda x, slope: torch.where(x < 0, slope * x, x),
    "Max": _fold(torch.maximum),
    "Min": _fold(torch.minimum),
    "Sum": _fold(torch.add),
    "Mean": lambda *operands: _fold(torch.add)(*operands) / len(operands),
    "Where": torch.where,
    "Equal": torch.eq,
    "Greater": torch.gt,
    "GreaterOrEqual": torch.ge,
    "Less": torch.lt,
    "LessOrEqual": torch.le,
    "And": torch.logical_and,
    "Or": torch.logical_or,
    "Xor": torch.logical_xor,
}


@register
class BroadcastRule(OperatorRule):
    """Any number of tensors, element by element, with ONNX's (NumPy's) broadcasting."""

    kinds = tuple(_OPERATORS)

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        for name in node.inputs:
            deduction.resample(node, name)
        return [broadcast(tuple(deduction.dimensions(name) for name in node.inputs), deduction)]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        return _OPERATORS[node.kind](*arguments)

    def run_time_attributes(self, node: Node) -> Attributes:
        return ()
