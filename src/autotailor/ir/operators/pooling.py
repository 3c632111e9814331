"""Pooling, and reductions over axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from autotailor.ir.dimension import Constant
from autotailor.ir.feature import Attributes, freeze_attributes
from autotailor.ir.graph import Node
from autotailor.ir.operator import Deduction, Dimensions, OperatorRule, Tensor, register
from autotailor.ir.operators._window import pad_like, window_attributes

_REDUCE: dict[str, Callable[..., Tensor]] = {
    "GlobalAveragePool": torch.mean,
    "GlobalMaxPool": torch.amax,
    "ReduceMean": torch.mean,
    "ReduceSum": torch.sum,
    "ReduceMax": torch.amax,
}


@register
class PoolRule(OperatorRule):
    """MaxPool and AveragePool: channels pass, spatial axes slide."""

    kinds = ("MaxPool", "AveragePool")

    def applies(self, node: Node, deduction: Deduction) -> str:
        if len(node.outputs) > 1:
            return "a second output (indices) is not known"
        return "" if len(node.get("kernel_shape")) in (1, 2, 3) else "only 1 to 3 spatial axes are known"

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = deduction.dimensions(node.inputs[0])
        return [(*x[:2], *window_attributes(node, node.get("kernel_shape")).slide(x[2:]))]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        window = window_attributes(node, node.get("kernel_shape"))
        rank = len(window.kernel)
        if node.kind == "MaxPool":
            x, pads = pad_like(arguments[0], window, float("-inf"))
            pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[rank - 1]
            result: Tensor = pool(x, window.kernel, window.strides, pads, window.dilations, window.ceil)
            return result
        include = bool(node.get("count_include_pad", 0))
        x, pads = pad_like(arguments[0], window, 0.0) if include else (arguments[0], window.pads[:rank])
        average = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[rank - 1]
        result = average(x, window.kernel, window.strides, pads, window.ceil, include)
        return result

    def run_time_attributes(self, node: Node) -> Attributes:
        window = window_attributes(node, node.get("kernel_shape"))
        extra = {"ceil_mode": int(window.ceil), "count_include_pad": node.get("count_include_pad", 0)}
        return freeze_attributes({**window.as_attributes(), **extra})


@register
class GlobalPoolRule(OperatorRule):
    """Global pooling: every spatial axis becomes one."""

    kinds = ("GlobalAveragePool", "GlobalMaxPool")

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = deduction.dimensions(node.inputs[0])
        return [(*x[:2], *(Constant(1) for _ in x[2:]))]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        axes = tuple(range(2, arguments[0].ndim))
        return _REDUCE[node.kind](arguments[0], axes, keepdim=True)


@register
class ReduceRule(OperatorRule):
    """Reductions over constant axes."""

    kinds = ("ReduceMean", "ReduceSum", "ReduceMax")
    constant_inputs = {1: "axes"}
    attribute_at_17 = frozenset({"ReduceMean", "ReduceMax"})

    def applies(self, node: Node, deduction: Deduction) -> str:
        return "" if node.get("axes") is not None else "its axes are not constant"

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = deduction.dimensions(node.inputs[0])
        axes = {axis % len(x) for axis in node.get("axes")}
        if node.get("keepdims", 1):
            return [tuple(Constant(1) if i in axes else d for i, d in enumerate(x))]
        return [tuple(d for i, d in enumerate(x) if i not in axes)]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        return _REDUCE[node.kind](arguments[0], tuple(node.get("axes")), keepdim=bool(node.get("keepdims", 1)))
