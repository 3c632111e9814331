"""Concat: the dimensions along its axis add up, and those along any other axis are coupled.

A constant operand (a class token) keeps its size along the axis. A constant has a batch of one, which is repeated for
every image.
"""

from collections.abc import Sequence
from typing import Any

import torch

from autotailor.ir.dimensions.dimension import Batch, total
from autotailor.ir.graph import Node
from autotailor.ir.operators.rule import Deduction, Dimensions, OperatorRule, Tensor, register


@register
class ConcatRule(OperatorRule):
    """Concatenation along one axis."""

    kinds = ("Concat",)

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        operands = [deduction.dimensions(name) for name in node.inputs]
        first = operands[0]
        axis = node.get("axis") % len(first)
        for other in operands[1:]:
            for i, (a, b) in enumerate(zip(first, other, strict=True)):
                if i != axis:
                    deduction.unify(a, b)
        for name, operand in zip(node.inputs, operands, strict=True):
            if deduction.is_weight(name):
                deduction.freeze(operand[axis])
                deduction.resample(node, name)
        joined = total(tuple(operand[axis] for operand in map(deduction.dimensions, node.inputs)))
        batch = next((o[0] for o in operands if isinstance(o[0], Batch)), first[0])
        rest = (*first[:axis], joined, *first[axis + 1 :])
        return [rest if axis == 0 else (batch, *rest[1:])]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        axis = node.get("axis") % arguments[0].ndim
        batch = max(x.shape[0] for x in arguments)
        return torch.cat([x.expand(batch, *x.shape[1:]) if axis else x for x in arguments], dim=axis)
