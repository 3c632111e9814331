"""Element by element: activations, and arithmetic with broadcasting.

Add of ``[1, c, h, w]`` and ``[1, c', h, w]`` couples c with c': the two sides of a residual sum change together. An
axis of one broadcasts and couples nothing. A constant operand is a weight whose axes follow the other side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from autotailor.ir.feature import Attributes, freeze_attributes
from autotailor.ir.graph import Node
from autotailor.ir.operator import Deduction, Dimensions, OperatorRule, Tensor, broadcast, register

_UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "Relu": F.relu,
    "Sigmoid": torch.sigmoid,
    "Tanh": torch.tanh,
    "HardSwish": F.hardswish,
    "Mish": F.mish,
    "Softplus": F.softplus,
    "Erf": torch.erf,
    "Exp": torch.exp,
    "Sqrt": torch.sqrt,
    "Neg": torch.neg,
    "Abs": torch.abs,
    "Identity": lambda x: x,
}
_BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "Add": torch.add,
    "Sub": torch.sub,
    "Mul": torch.mul,
    "Div": torch.div,
}


class ElementwiseRule(OperatorRule):
    """One activation in, the same dimensions out."""

    elementwise = True

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        return [deduction.dimensions(node.inputs[0])]


@register
class UnaryRule(ElementwiseRule):
    """Activations without parameters."""

    kinds = tuple(_UNARY)

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        return _UNARY[node.kind](arguments[0])


@register
class ClipRule(ElementwiseRule):
    """Clip to constant limits; ReLU6 is Clip(0, 6)."""

    kinds = ("Clip",)
    constant_inputs = {1: "min", 2: "max"}

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        return torch.clamp(arguments[0], node.get("min"), node.get("max"))


@register
class LeakyReluRule(ElementwiseRule):
    """LeakyRelu and Elu, with their slope."""

    kinds = ("LeakyRelu", "Elu")

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        if node.kind == "Elu":
            return F.elu(arguments[0], node.get("alpha", 1.0))
        return F.leaky_relu(arguments[0], node.get("alpha", 0.01))

    def run_time_attributes(self, node: Node) -> Attributes:
        return freeze_attributes({"alpha": node.get("alpha", 1.0 if node.kind == "Elu" else 0.01)})


@register
class HardSigmoidRule(ElementwiseRule):
    """max(0, min(1, alpha x + beta))."""

    kinds = ("HardSigmoid",)

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        return torch.clamp(node.get("alpha", 0.2) * arguments[0] + node.get("beta", 0.5), 0, 1)

    def run_time_attributes(self, node: Node) -> Attributes:
        return freeze_attributes({"alpha": node.get("alpha", 0.2), "beta": node.get("beta", 0.5)})


@register
class BinaryRule(OperatorRule):
    """Arithmetic of two tensors with ONNX's (NumPy's) broadcasting."""

    kinds = tuple(_BINARY)

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        for name in node.inputs:
            deduction.resample(node, name)
        return [broadcast(tuple(deduction.dimensions(name) for name in node.inputs), deduction)]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        return _BINARY[node.kind](arguments[0], arguments[1])
