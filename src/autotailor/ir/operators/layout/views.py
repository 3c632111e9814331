"""Operators that only relabel data: Flatten, Squeeze, Unsqueeze, Reshape, Dropout."""

import math
from collections.abc import Sequence
from typing import Any

from autotailor.ir.dimensions.dimension import Batch, Constant, factors_of, product
from autotailor.ir.feature import Shape
from autotailor.ir.graph import Node
from autotailor.ir.operators.rule import Deduction, Dimensions, OperatorRule, Tensor, register


@register
class FlattenRule(OperatorRule):
    """``[a, b, c, ...]`` becomes a matrix, split before ``axis``."""

    kinds = ("Flatten",)
    view = True

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = deduction.dimensions(node.inputs[0])
        axis = _first_behind(node, len(x))
        return [(product(x[:axis]), product(x[axis:]))]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x: Tensor = arguments[0]
        axis = _first_behind(node, x.ndim)
        return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


def _first_behind(node: Node, rank: int) -> int:
    """The first axis of a Flatten's second group: of rank 4, -1 means 3, and 4 leaves nothing behind."""
    axis: int = node.get("axis", 1)
    return axis + rank if axis < 0 else axis


@register
class ReshapeRule(OperatorRule):
    """Axes regrouped in row-major order: flattened maps, attention heads, channel shuffle.

    In general form the axis that carries the batch is -1 in the target shape, so that modules run with any batch.
    """

    kinds = ("Reshape",)
    constant_inputs = {1: "shape"}
    view = True
    follows_shapes = True

    def applies(self, node: Node, deduction: Deduction) -> str:
        return "its target shape is not constant" if node.get("shape") is None else ""

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        return [deduction.factor(deduction.dimensions(node.inputs[0]), deduction.shape(node.outputs[0]))]

    def general(self, node: Node, inputs: Sequence[Dimensions], outputs: Sequence[Dimensions]) -> Node:
        open_axes = (any(isinstance(f, Batch) for f in factors_of(axis)) for axis in outputs[0])
        return node.with_attributes(
            shape=tuple(-1 if o else axis.meta for o, axis in zip(open_axes, outputs[0], strict=True))
        ).without_attributes("allowzero")

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x: Tensor = arguments[0]
        return x.reshape(node.get("shape"))

    def specialise(self, node: Node, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> Node:
        shape = (-1 if old == -1 else size for old, size in zip(node.get("shape"), outputs[0], strict=True))
        return node.with_attributes(shape=tuple(shape))


@register
class SqueezeRule(OperatorRule):
    """Squeeze drops axes of one, Unsqueeze inserts them."""

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
    """Dropout of an inference graph passes its input on."""

    kinds = ("Dropout",)
    view = True

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        return [deduction.dimensions(node.inputs[0])]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        result: Tensor = arguments[0]
        return result
