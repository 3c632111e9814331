"""Activation functions: without parameters, with parameters, and along an axis (Softmax)."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from autotailor.ir.feature import Attributes, freeze_attributes
from autotailor.ir.graph import Node
from autotailor.ir.operators.pointwise.elementwise import ElementwiseRule, SameShapeRule
from autotailor.ir.operators.rule import Tensor, register

_PLAIN: dict[str, Callable[[Tensor], Tensor]] = {
    "Relu": F.relu,
    "Sigmoid": torch.sigmoid,
    "Tanh": torch.tanh,
    "HardSwish": F.hardswish,
    "Mish": F.mish,
    "Softplus": F.softplus,
    "Softsign": F.softsign,
}
_PARAMETERS: dict[str, dict[str, Any]] = {
    **{kind: {} for kind in _PLAIN},
    "LeakyRelu": {"alpha": 0.01},
    "Elu": {"alpha": 1.0},
    "Celu": {"alpha": 1.0},
    "Selu": {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
    "ThresholdedRelu": {"alpha": 1.0},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "Shrink": {"bias": 0.0, "lambd": 0.5},
    "Gelu": {"approximate": "none"},
    "Swish": {"alpha": 1.0},
}
_SINCE = {"Mish": 18, "Gelu": 20, "Swish": 24}


def _shrink(x: Tensor, bias: float, lambd: float) -> Tensor:
    return torch.where(x < -lambd, x + bias, torch.where(x > lambd, x - bias, torch.zeros_like(x)))


_CALLS: dict[str, Callable[..., Tensor]] = {
    **_PLAIN,
    "LeakyRelu": lambda x, alpha: F.leaky_relu(x, alpha),
    "Elu": F.elu,
    "Celu": F.celu,
    "Selu": lambda x, alpha, gamma: gamma * F.elu(x, alpha),
    "ThresholdedRelu": lambda x, alpha: torch.where(x > alpha, x, torch.zeros_like(x)),
    "HardSigmoid": lambda x, alpha, beta: torch.clamp(alpha * x + beta, 0, 1),
    "Shrink": _shrink,
    "Gelu": F.gelu,
    "Swish": lambda x, alpha: x * torch.sigmoid(alpha * x),
}


@register
class ActivationRule(ElementwiseRule):
    """Activations without parameters, or with constant ones, ONNX's defaults filled in."""

    kinds = tuple(_PARAMETERS)

    def _parameters(self, node: Node) -> dict[str, Any]:
        return {name: node.get(name, default) for name, default in _PARAMETERS[node.kind].items()}

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        return _CALLS[node.kind](arguments[0], **self._parameters(node))

    def run_time_attributes(self, node: Node) -> Attributes:
        return freeze_attributes(self._parameters(node))

    def opset(self, node: Node) -> int:
        return _SINCE.get(node.kind, super().opset(node))


_ALONG_AXIS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "Softmax": torch.softmax,
    "LogSoftmax": torch.log_softmax,
}


@register
class SoftmaxRule(SameShapeRule):
    """Softmax over one axis; the active part of the axis sums up to one."""

    kinds = tuple(_ALONG_AXIS)

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        return _ALONG_AXIS[node.kind](arguments[0], node.get("axis", -1))

    def run_time_attributes(self, node: Node) -> Attributes:
        return freeze_attributes({"axis": node.get("axis", -1)})
