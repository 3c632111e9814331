"""Transpose: axes change places, and so do their dimensions."""

from collections.abc import Sequence
from typing import Any

from autotailor.ir.feature import Attributes, freeze_attributes
from autotailor.ir.graph import Node
from autotailor.ir.operators.rule import Deduction, Dimensions, OperatorRule, Tensor, register


@register
class TransposeRule(OperatorRule):
    """Permutes axes by ``perm``; without ``perm`` the axes are reversed."""

    kinds = ("Transpose",)

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = deduction.dimensions(node.inputs[0])
        return [tuple(x[axis] for axis in _permutation(node, len(x)))]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x: Tensor = arguments[0]
        return x.permute(_permutation(node, x.ndim))

    def run_time_attributes(self, node: Node) -> Attributes:
        return freeze_attributes({"perm": node.get("perm", ())})


def _permutation(node: Node, rank: int) -> tuple[int, ...]:
    return tuple(node.get("perm") or reversed(range(rank)))
