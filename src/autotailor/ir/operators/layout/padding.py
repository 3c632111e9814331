"""Pad: spatial axes grow, channels get constant neighbours."""

from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F

from autotailor.ir.dimensions.dimension import Constant, Dimension, Sum, slid
from autotailor.ir.feature import Attributes, freeze_attributes
from autotailor.ir.graph import Node
from autotailor.ir.operators.rule import Deduction, Dimensions, OperatorRule, Tensor, register

_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}


@register
class PadRule(OperatorRule):
    """Constant pads: of channels only zeros or another constant, of spatial axes also reflections and edges."""

    kinds = ("Pad",)
    constant_inputs = {1: "pads", 2: "value", 3: "axes"}

    def applies(self, node: Node, deduction: Deduction) -> str:
        if any(node.inputs[1:]):
            return "its pads are computed, not constant"
        begins, ends = pads_of(node, len(deduction.shape(node.inputs[0])))
        if begins[0] or ends[0]:
            return "it pads the batch"
        others = [pair for pair in zip(begins[1:2], ends[1:2], strict=True) if pair != (0, 0)]
        if others and node.get("mode", "constant") != "constant":
            return "it repeats channels"
        return "it cuts channels off" if min((*begins[1:2], *ends[1:2])) < 0 else ""

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = deduction.dimensions(node.inputs[0])
        begins, ends = pads_of(node, len(x))
        repeated = {"reflect": 1, "wrap": 0}.get(node.get("mode", "constant"))
        for dimension, begin, end in zip(x, begins, ends, strict=True):
            if repeated is not None and (most := max(begin, end)) > 0:
                reason = f"Pad {node.name} repeats {most} pixels of an image, which has fewer"
                deduction.require(dimension, most + repeated, reason)
        return [tuple(_extend(d, b, e, i) for i, (d, b, e) in enumerate(zip(x, begins, ends, strict=True)))]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x: Tensor = arguments[0]
        pads, value, axes = (*arguments[1:], None, None, None)[:3]
        if pads is not None:
            node = node.with_attributes(pads=pads.tolist(), **({} if axes is None else {"axes": axes.tolist()}))
        begins, ends = pads_of(node, x.ndim)
        mode = _MODES[node.get("mode", "constant")]
        touched = [i for i in range(x.ndim) if begins[i] or ends[i]] or [x.ndim - 1]
        first = touched[0] if mode == "constant" else min(touched[0], 2)  # PyTorch repeats pixels of all spatial axes
        amounts = [amount for i in reversed(range(first, x.ndim)) for amount in (begins[i], ends[i])]
        if mode == "constant":
            return F.pad(x, amounts, value=float(node.get("value", 0.0) if value is None else value))
        return F.pad(x, amounts, mode)

    def run_time_attributes(self, node: Node) -> Attributes:
        return freeze_attributes({"mode": node.get("mode", "constant"), "pads": node.get("pads", ())})

    def opset(self, node: Node) -> int:
        if node.get("mode") == "wrap":
            return 19
        return 18 if node.get("axes") is not None else super().opset(node)


def pads_of(node: Node, rank: int) -> tuple[list[int], list[int]]:
    """Pads before and behind each axis of the tensor."""
    pads = tuple(node.get("pads"))
    axes = node.get("axes")
    axes = range(rank) if axes is None else [axis % rank for axis in axes]
    begins, ends = [0] * rank, [0] * rank
    for i, axis in enumerate(axes):
        begins[axis], ends[axis] = pads[i], pads[i + len(pads) // 2]
    return begins, ends


def _extend(dimension: Dimension, begin: int, end: int, axis: int) -> Dimension:
    if begin == end == 0:
        return dimension
    if isinstance(dimension, Constant):
        return Constant(begin + dimension.meta + end)
    if axis == 1:
        return Sum(tuple(part for part in (Constant(begin), dimension, Constant(end)) if part.meta))
    return slid(dimension, 1 - begin - end)
