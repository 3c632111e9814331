"""Element by element: mathematical functions of one number, Clip, Cast.

Activation functions stand in ``activations.py``, arithmetic with broadcasting in ``arithmetic.py``.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from onnx import helper

from autotailor.ir.feature import Attributes
from autotailor.ir.graph import Node
from autotailor.ir.operators.rule import Deduction, Dimensions, OperatorRule, Tensor, register

_UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "Erf": torch.erf,
    "Exp": torch.exp,
    "Log": torch.log,
    "Sqrt": torch.sqrt,
    "Reciprocal": torch.reciprocal,
    "Neg": torch.neg,
    "Abs": torch.abs,
    "Sign": torch.sign,
    "Floor": torch.floor,
    "Ceil": torch.ceil,
    "Round": torch.round,
    "Sin": torch.sin,
    "Cos": torch.cos,
    "Not": torch.logical_not,
    "Identity": lambda x: x,
}


class SameShapeRule(OperatorRule):
    """One activation in, the same dimensions out."""

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        return [deduction.dimensions(node.inputs[0])]


class ElementwiseRule(SameShapeRule):
    """Element by element."""

    elementwise = True


@register
class UnaryRule(ElementwiseRule):
    """Functions of one number."""

    kinds = tuple(_UNARY)

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        return _UNARY[node.kind](arguments[0])


@register
class ClipRule(ElementwiseRule):
    """Clip to constant limits, either of which may be absent; ReLU6 is Clip(0, 6)."""

    kinds = ("Clip",)
    constant_inputs = {1: "min", 2: "max"}

    def applies(self, node: Node, deduction: Deduction) -> str:
        return "its limits are computed, not constant" if any(node.inputs[1:]) else ""

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        low, high = (*arguments[1:], None, None)[:2]
        low = node.get("min") if low is None else low
        high = node.get("max") if high is None else high
        if isinstance(low, float) and isinstance(high, float):
            return F.hardtanh(arguments[0], low, high)  # one kernel in the backward pass, where clamp has four
        return arguments[0] if low is None and high is None else torch.clamp(arguments[0], low, high)


@register
class CastRule(ElementwiseRule):
    """Cast to another type; ``to`` is ONNX's number of the type."""

    kinds = ("Cast",)

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        name = helper.tensor_dtype_to_np_dtype(node.get("to")).name
        return torch.as_tensor(arguments[0]).to(getattr(torch, name))

    def run_time_attributes(self, node: Node) -> Attributes:
        return (("to", node.get("to")),)
