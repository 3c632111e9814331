"""Operators that only relabel data: Flatten, Squeeze, Unsqueeze, Reshape to a matrix, Dropout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from autotailor.ir.dimension import Constant, product
from autotailor.ir.feature import Shape
from autotailor.ir.graph import Node
from autotailor.ir.operator import Deduction, Dimensions, OperatorRule, Tensor, register


@register
class FlattenRule(OperatorRule):
    """``[a, b, c, ...]`` becomes a matrix, split before ``axis``."""

    kinds = ("Flatten",)
    view = True

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = deduction.dimensions(node.inputs[0])
        axis = node.get("axis", 1) % (len(x) + 1)
        return [(product(x[:axis]), product(x[axis:]))]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x: Tensor = arguments[0]
        axis = node.get("axis", 1) % (x.ndim + 1)
        return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@register
class ReshapeRule(OperatorRule):
    """Reshape of ``[batch, ...]`` to ``[batch, everything else]``; other reshapes stay static."""

    kinds = ("Reshape",)
    constant_inputs = {1: "shape"}
    view = True

    def applies(self, node: Node, deduction: Deduction) -> str:
        if node.get("shape") is None:
            return "its target shape is not constant"
        source, target = deduction.shape(node.inputs[0]), deduction.shape(node.outputs[0])
        is_matrix = len(target) == 2 and len(source) >= 2 and source[0] == target[0]
        return "" if is_matrix else f"reshape from {list(source)} to {list(target)} is not known"

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = deduction.dimensions(node.inputs[0])
        return [(x[0], product(x[1:]))]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x: Tensor = arguments[0]
        return x.flatten(1)

    def specialise(self, node: Node, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> Node:
        return node.with_attributes(shape=outputs[0])


@register
class SqueezeRule(OperatorRule):
    """Axes of one are dropped (Squeeze) or put in (Unsqueeze)."""

    kinds = ("Squeeze", "Unsqueeze")
    constant_inputs = {1: "axes"}
    view = True

    def applies(self, node: Node, deduction: Deduction) -> str:
        return "" if node.get("axes") is not None else "its axes are not constant"

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = deduction.dimensions(node.inputs[0])
        if node.kind == "Squeeze":
            gone = {axis % len(x) for axis in node.get("axes")}
            return [tuple(d for i, d in enumerate(x) if i not in gone)]
        rank = len(x) + len(node.get("axes"))
        new = {axis % rank for axis in node.get("axes")}
        rest = iter(x)
        return [tuple(Constant(1) if i in new else next(rest) for i in range(rank))]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x: Tensor = arguments[0]
        axes = node.get("axes")
        if node.kind == "Squeeze":
            return x.squeeze(tuple(axis % x.ndim for axis in axes))
        rank = x.ndim + len(axes)
        for axis in sorted(axis % rank for axis in axes):
            x = x.unsqueeze(axis)
        return x


@register
class DropoutRule(OperatorRule):
    """Dropout of an inference graph: nothing happens."""

    kinds = ("Dropout",)
    view = True

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        return [deduction.dimensions(node.inputs[0])]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        result: Tensor = arguments[0]
        return result
