"""Convolutions: dense, grouped, depthwise, dilated, strided.

Conv 3x3 with weight ``[out, in / group, 3, 3]``: the input's channels and the weight's second axis are one
dimension, the output's channels are a new atom. Depthwise couples input and output channels; with g groups the input
becomes ``Product(groups, in / g)``, so that groups, not channels, come and go.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F

from autotailor.ir.dimensions.dimension import Constant, Dimension, Kernel, product
from autotailor.ir.feature import Attributes, OperatorFeature, Shape, freeze_attributes
from autotailor.ir.graph import Node
from autotailor.ir.operators.rule import Deduction, Dimensions, OperatorRule, Tensor, register
from autotailor.ir.operators.windows.window import (
    WindowAttributes,
    convolution_refusal,
    kernel_shape,
    pad_like,
    window_attributes,
)


@register
class ConvRule(OperatorRule):
    """Conv over any number of spatial axes with constant weights."""

    kinds = ("Conv",)

    def applies(self, node: Node, deduction: Deduction) -> str:
        return convolution_refusal(node, deduction)

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = deduction.dimensions(node.inputs[0])
        weight = deduction.shape(node.inputs[1])
        group = node.get("group", 1)
        if group == 1:
            deduction.unify(x[1], inner := deduction.fresh(node, weight[1], "in"))
            out: Dimension = deduction.fresh(node, weight[0])
        else:
            groups = x[1] if weight[1] == 1 else deduction.fresh(node, group, "groups")
            inner = Constant(weight[1])
            deduction.unify(x[1], product((groups, inner)))
            out = product((groups, Constant(weight[0] // group)))
        window = window_attributes(node, weight[2:])
        deduction.declare(node.inputs[1], (out, inner, *_kernel(node, window)))
        if len(node.inputs) > 2 and node.inputs[2]:
            deduction.declare(node.inputs[2], (out,))
        return [(x[0], out, *window.slide(x[2:]))]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x, weight, bias = (*arguments, None)[:3]
        window = _active_window(node, weight.shape[2:])
        x, pads = pad_like(x, window, 0.0)
        group = x.shape[1] // weight.shape[1]
        convolve = (F.conv1d, F.conv2d, F.conv3d)[weight.ndim - 3]
        result: Tensor = convolve(x, weight, bias, window.strides, pads, window.dilations, group)
        return result

    def specialise(self, node: Node, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> Node:
        weight = inputs[1]
        group = {"group": inputs[0][1] // weight[1]}
        if node.get("kernel_shape") in (None, weight[2:]):
            return node.with_attributes(**group, kernel_shape=weight[2:])
        return node.with_attributes(**group, **_active_window(node, weight[2:]).as_attributes())

    def run_time_attributes(self, node: Node) -> Attributes:
        window: WindowAttributes = window_attributes(node, node.get("kernel_shape"))
        return freeze_attributes({**window.as_attributes(), "group": node.get("group", 1)})

    def macs(self, feature: OperatorFeature) -> int:
        out = feature.outputs[0]
        return out[0] * math.prod(out[2:]) * math.prod(kernel_shape(feature))


def _kernel(node: Node, window: WindowAttributes) -> tuple[Dimension, ...]:
    """One atom for the sides of a kernel that can be cropped around its centre."""
    if node.get("kernel_shape") is None or not window.can_be_cropped(Kernel.LEAST):
        return tuple(Constant(k) for k in window.kernel)
    return (Kernel(f"{node.outputs[0]}:kernel", window.kernel[0]),) * len(window.kernel)


def _active_window(node: Node, kernel: Sequence[int]) -> WindowAttributes:
    """The window of a node for the active size of its kernel."""
    return window_attributes(node, node.get("kernel_shape", kernel)).cropped(kernel)
