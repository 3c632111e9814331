"""Einsum: contractions by equation; axes with one letter are one dimension."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from autotailor.ir.dimensions.dimension import Batch, Dimension
from autotailor.ir.feature import OperatorFeature
from autotailor.ir.graph import Node
from autotailor.ir.operators.rule import Deduction, Dimensions, OperatorRule, Tensor, register


@register
class EinsumRule(OperatorRule):
    """Explicit equations without ellipsis or repeated letters in one operand, for instance ``bhqd,bhkd->bhqk``."""

    kinds = ("Einsum",)

    def applies(self, node: Node, deduction: Deduction) -> str:
        operands, result = _letters(node)
        if "." in node.get("equation") or result is None:
            return "only explicit equations without ellipsis are known"
        if any(len(set(letters)) != len(letters) for letters in (*operands, result)):
            return "diagonals are not known"
        constant = [deduction.is_weight(name) for name in node.inputs]
        if constant != sorted(constant):
            return "a constant in front of an activation is not known"
        sizes: dict[str, int] = {}
        for name, letters in zip(node.inputs, operands, strict=True):
            for letter, size in zip(letters, deduction.shape(name), strict=True):
                if sizes.setdefault(letter, size) != size:
                    return "broadcasting is not known"
        return ""

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        operands, result = _letters(node)
        by_letter: dict[str, Dimension] = {}
        for name, letters in zip(node.inputs, operands, strict=True):
            for letter, axis in zip(letters, deduction.dimensions(name), strict=True):
                dimension = by_letter.get(letter)
                if dimension is not None:
                    deduction.unify(dimension, axis)
                if dimension is None or isinstance(axis, Batch):
                    by_letter[letter] = axis
        return [tuple(by_letter[letter] for letter in result or "")]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        return torch.einsum(node.get("equation"), *arguments)

    def macs(self, feature: OperatorFeature) -> int:
        letters = feature.attribute("equation").replace(" ", "").split("->")[0].split(",")
        sizes: dict[str, int] = {}
        for operand, shape in zip(letters, feature.operands, strict=True):
            sizes.update(zip(operand, shape, strict=True))
        return math.prod(sizes.values())


def _letters(node: Node) -> tuple[tuple[str, ...], str | None]:
    """Letters of each operand, and letters of the result; None where the equation does not say the result's."""
    left, arrow, right = node.get("equation").replace(" ", "").partition("->")
    return tuple(left.split(",")), right if arrow else None
