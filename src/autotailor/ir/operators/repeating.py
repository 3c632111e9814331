"""Expand and Tile: the same values several times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from autotailor.ir.dimension import Constant, product
from autotailor.ir.feature import Shape
from autotailor.ir.graph import Node
from autotailor.ir.operator import Deduction, Dimensions, OperatorRule, Tensor, register


@register
class ExpandRule(OperatorRule):
    """Axes of one are repeated up to a constant shape; others pass."""

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

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x: Tensor = arguments[0]
        shape = node.get("shape") if len(arguments) < 2 else arguments[1].tolist()
        return x * torch.ones(tuple(shape), dtype=x.dtype, device=x.device)

    def specialise(self, node: Node, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> Node:
        return node.with_attributes(shape=outputs[0]) if node.get("shape") is not None else node


@register
class TileRule(OperatorRule):
    """Each axis as a whole, some times over."""

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
