"""Normalisation with stored statistics: BatchNormalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F

from autotailor.ir.feature import Attributes, freeze_attributes
from autotailor.ir.graph import Node
from autotailor.ir.operator import Deduction, Dimensions, OperatorRule, Tensor, register

EPSILON = 1e-5


@register
class BatchNormalizationRule(OperatorRule):
    """Inputs: x ``[n, c, ...]``, gain, shift, running mean, running variance, each ``[c]``."""

    kinds = ("BatchNormalization",)
    statistics = (3, 4)

    def applies(self, node: Node, deduction: Deduction) -> str:
        return "" if all(deduction.is_weight(name) for name in node.inputs[1:]) else "its statistics are computed"

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = deduction.dimensions(node.inputs[0])
        for name in node.inputs[1:]:
            deduction.declare(name, (x[1],))
        return [x]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x, gain, shift, mean, variance = arguments
        return F.batch_norm(x, mean, variance, gain, shift, training=False, eps=node.get("epsilon", EPSILON))

    def run_time_attributes(self, node: Node) -> Attributes:
        return freeze_attributes({"epsilon": node.get("epsilon", EPSILON)})
