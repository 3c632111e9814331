"""Expand and Tile: operators that repeat values."""

from collections.abc import Sequence
from typing import Any

import torch

from autotailor.ir.dimensions.dimension import Constant, product
from autotailor.ir.feature import Shape
from autotailor.ir.graph import Node
from autotailor.ir.operators.rule import Deduction, Dimensions, OperatorRule, Tensor, register


@register
class ExpandRule(OperatorRule):
    """Axes of one are repeated up to a constant shape. Other axes pass; the general shape has a one there."""

    kinds = ("Expand",)
    constant_inputs = {1: "shape"}
    follows_shapes = True

    def applies(self, node: Node, deduction: Deduction) -> str:
        return "its target shape is not constant" if any(node.inputs[1:]) else ""

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        target = deduction.shape(node.outputs[0])
        own = deduction.dimensions(node.inputs[0])
        own = (Constant(1),) * (len(target) - len(own)) + own
        return [tuple(d if d.meta == size else Constant(size) for d, size in zip(own, target, strict=True))]

    def general(self, node: Node, inputs: Sequence[Dimensions], outputs: Sequence[Dimensions]) -> Node:
        if node.get("shape") is None:
            return node
        own = (Constant(1),) * (len(outputs[0]) - len(inputs[0])) + tuple(inputs[0])
        shape = (1 if d.meta == axis.meta else axis.meta for d, axis in zip(own, outputs[0], strict=True))
        return node.with_attributes(shape=tuple(shape))

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x: Tensor = arguments[0]
        shape = node.get("shape") if len(arguments) < 2 else arguments[1].tolist()
        return x.expand(torch.broadcast_shapes(x.shape, tuple(shape))).clone()  # type: ignore[no-untyped-call]

    def specialise(self, node: Node, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> Node:
        if node.get("shape") is None:
            return node
        shape = (1 if old == 1 else size for old, size in zip(node.get("shape"), outputs[0], strict=True))
        return node.with_attributes(shape=tuple(shape))


@register
class TileRule(OperatorRule):
    """Every axis is repeated as a whole, a constant number of times."""

    kinds = ("Tile",)
    constant_inputs = {1: "repeats"}

    def applies(self, node: Node, deduction: Deduction) -> str:
        return "its repeats are not constant" if any(node.inputs[1:]) else ""

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = deduction.dimensions(node.inputs[0])
        return [tuple(product((Constant(n), d)) for n, d in zip(node.get("repeats"), x, strict=True))]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x: Tensor = arguments[0]
        return x.repeat(node.get("repeats") if len(arguments) < 2 else arguments[1].tolist())
