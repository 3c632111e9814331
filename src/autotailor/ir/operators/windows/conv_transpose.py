"""Transposed convolutions: weight ``[in, out / group, ...]``."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch.nn.functional as F

from autotailor.ir.dimensions.dimension import Constant, Dimension, Window, product
from autotailor.ir.feature import Attributes, OperatorFeature, Shape, freeze_attributes
from autotailor.ir.graph import Node
from autotailor.ir.operators.rule import Deduction, Dimensions, OperatorRule, Tensor, register
from autotailor.ir.operators.windows.window import (
    WindowAttributes,
    convolution_refusal,
    kernel_shape,
    window_attributes,
)


@register
class ConvTransposeRule(OperatorRule):
    """A spatial axis of n becomes ``stride (n - 1) + output_padding + span - pads``."""

    kinds = ("ConvTranspose",)
    follows_shapes = True

    def applies(self, node: Node, deduction: Deduction) -> str:
        return convolution_refusal(node, deduction)

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = deduction.dimensions(node.inputs[0])
        weight = deduction.shape(node.inputs[1])
        group = node.get("group", 1)
        if group == 1:
            deduction.unify(x[1], first := deduction.fresh(node, weight[0], "in"))
            second = out = deduction.fresh(node, weight[1])
        else:
            per_group = weight[0] // group
            groups = x[1] if per_group == 1 else deduction.fresh(node, group, "groups")
            deduction.unify(x[1], first := product((groups, Constant(per_group))))
            second = Constant(weight[1])
            out = product((groups, second))
        deduction.declare(node.inputs[1], (first, second, *(Constant(k) for k in weight[2:])))
        if len(node.inputs) > 2 and node.inputs[2]:
            deduction.declare(node.inputs[2], (out,))
        window = window_attributes(node, weight[2:])
        return [(x[0], out, *(_grow(node, window, i, d) for i, d in enumerate(x[2:])))]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x, weight, bias = (*arguments, None)[:3]
        window = window_attributes(node, weight.shape[2:])
        rank = len(window.kernel)
        convolve: Callable[..., Tensor] = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
        whole = convolve(x, weight, None, window.strides, 0, 0, node.get("group", 1), window.dilations)
        padding = _output_padding(node, rank)
        amounts = [n for i in reversed(range(rank)) for n in (-window.pads[i], padding[i] - window.pads[i + rank])]
        cropped = F.pad(whole, amounts)
        return cropped if bias is None else cropped + bias.reshape(-1, *(1,) * rank)

    def specialise(self, node: Node, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> Node:
        return node.with_attributes(group=outputs[0][1] // inputs[1][1], kernel_shape=inputs[1][2:])

    def run_time_attributes(self, node: Node) -> Attributes:
        window = window_attributes(node, node.get("kernel_shape"))
        more = {"group": node.get("group", 1), "output_padding": _output_padding(node, len(window.kernel))}
        return freeze_attributes({**window.as_attributes(), **more})

    def macs(self, feature: OperatorFeature) -> int:
        x = feature.inputs[0]
        return x[0] * math.prod(x[2:]) * math.prod(kernel_shape(feature))


def _output_padding(node: Node, rank: int) -> tuple[int, ...]:
    return tuple(node.get("output_padding", (0,) * rank))


def _grow(node: Node, window: WindowAttributes, i: int, dimension: Dimension) -> Dimension:
    rank = len(window.kernel)
    stride = window.strides[i]
    pads = window.pads[i] + window.pads[i + rank]
    added = window.span(i) - stride + _output_padding(node, rank)[i] - pads
    grown = product((dimension, Constant(stride)))
    window_of_one = Window(grown, 1 - added, 1)
    return grown if added == 0 else Constant(window_of_one.meta) if isinstance(grown, Constant) else window_of_one
