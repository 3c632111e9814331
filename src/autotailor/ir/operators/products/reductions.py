"""Reductions over constant axes."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from autotailor.ir.dimensions.dimension import Constant
from autotailor.ir.feature import Attributes, freeze_attributes
from autotailor.ir.graph import Node
from autotailor.ir.operators.rule import Deduction, Dimensions, OperatorRule, Tensor, register


def _prod(x: Tensor, axes: tuple[int, ...], keepdim: bool) -> Tensor:
    """PyTorch multiplies along one axis at a time."""
    for axis in sorted((axis % x.ndim for axis in axes), reverse=True):
        x = x.prod(axis, keepdim)
    return x


_REDUCE: dict[str, Callable[..., Tensor]] = {
    "ReduceMean": torch.mean,
    "ReduceSum": torch.sum,
    "ReduceMax": torch.amax,
    "ReduceMin": torch.amin,
    "ReduceProd": _prod,
    "ReduceL1": lambda x, axes, keepdim: x.abs().sum(axes, keepdim),
    "ReduceL2": lambda x, axes, keepdim: x.square().sum(axes, keepdim).sqrt(),
    "ReduceSumSquare": lambda x, axes, keepdim: x.square().sum(axes, keepdim),
    "ReduceLogSum": lambda x, axes, keepdim: x.sum(axes, keepdim).log(),
    "ReduceLogSumExp": torch.logsumexp,
}


@register
class ReduceRule(OperatorRule):
    """Reductions over some axes; without ``axes`` over all axes."""

    kinds = tuple(_REDUCE)
    constant_inputs = {1: "axes"}
    attribute_at_17 = frozenset(_REDUCE) - {"ReduceSum"}

    def applies(self, node: Node, deduction: Deduction) -> str:
        return "its axes are not constant" if any(node.inputs[1:]) else ""

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = deduction.dimensions(node.inputs[0])
        axes = {axis % len(x) for axis in _axes(node, len(x))}
        if node.get("keepdims", 1):
            return [tuple(Constant(1) if i in axes else d for i, d in enumerate(x))]
        return [tuple(d for i, d in enumerate(x) if i not in axes)]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x: Tensor = arguments[0]
        axes = tuple(arguments[1].tolist()) if len(arguments) > 1 else _axes(node, x.ndim)
        return _REDUCE[node.kind](x, axes, bool(node.get("keepdims", 1))) if axes else x

    def run_time_attributes(self, node: Node) -> Attributes:
        return freeze_attributes({"axes": node.get("axes", ()), "keepdims": node.get("keepdims", 1)})


def _axes(node: Node, rank: int) -> tuple[int, ...]:
    axes: tuple[int, ...] = tuple(node.get("axes") or ())
    return axes if axes or node.get("noop_with_empty_axes", 0) else tuple(range(rank))
