"""Concat: along its axis, dimensions add up; elsewhere they are coupled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from autotailor.ir.dimension import Sum
from autotailor.ir.graph import Node
from autotailor.ir.operator import Deduction, Dimensions, OperatorRule, Tensor, register


@register
class ConcatRule(OperatorRule):
    """Concatenation of activations along one axis."""

    kinds = ("Concat",)

    def applies(self, node: Node, deduction: Deduction) -> str:
        return "a constant operand is not known" if any(deduction.is_weight(n) for n in node.inputs) else ""

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        operands = [deduction.dimensions(name) for name in node.inputs]
        first = operands[0]
        axis = node.get("axis") % len(first)
        for other in operands[1:]:
            for i, (a, b) in enumerate(zip(first, other, strict=True)):
                if i != axis:
                    deduction.unify(a, b)
        joined = Sum(tuple(operand[axis] for operand in operands))
        return [(*first[:axis], joined, *first[axis + 1 :])]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        return torch.cat(list(arguments), dim=node.get("axis"))
