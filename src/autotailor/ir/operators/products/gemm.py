"""Matrix products: Gemm with a constant matrix, and MatMul."""

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from autotailor.ir.feature import Attributes, OperatorFeature, freeze_attributes
from autotailor.ir.graph import Node
from autotailor.ir.operators.rule import Deduction, Dimensions, OperatorRule, Tensor, broadcast, register


@register
class GemmRule(OperatorRule):
    """Y = alpha A B + beta C with A ``[n, k]`` and constant B; B's axes are (k, m), or (m, k) with transB."""

    kinds = ("Gemm",)

    def applies(self, node: Node, deduction: Deduction) -> str:
        if deduction.is_weight(node.inputs[0]) or not deduction.is_weight(node.inputs[1]):
            return "only a constant second matrix is known"
        if node.get("transA", 0):
            return "a transposed activation is not known"
        return ""

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        rows, inner = deduction.dimensions(node.inputs[0])
        shape = deduction.shape(node.inputs[1])
        out = deduction.fresh(node, shape[0] if node.get("transB", 0) else shape[1])
        deduction.declare(node.inputs[1], (out, inner) if node.get("transB", 0) else (inner, out))
        if len(node.inputs) > 2 and node.inputs[2]:
            bias = deduction.shape(node.inputs[2])
            if bias and bias[-1] != 1:
                deduction.declare(node.inputs[2], (*deduction.dimensions(node.inputs[2])[:-1], out))
        return [(rows, out)]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        a, b, c = (*arguments, None)[:3]
        if node.get("alpha", 1.0) == node.get("beta", 1.0) == 1.0 and (c is None or c.ndim == 1):
            return F.linear(a, b if node.get("transB", 0) else b.mT, c)
        result: Tensor = node.get("alpha", 1.0) * (a @ (b.mT if node.get("transB", 0) else b))
        return result if c is None else result + node.get("beta", 1.0) * c

    def run_time_attributes(self, node: Node) -> Attributes:
        return freeze_attributes({"transB": node.get("transB", 0)})

    def macs(self, feature: OperatorFeature) -> int:
        return math.prod(feature.inputs[0]) * feature.outputs[0][1]


@register
class MatMulRule(OperatorRule):
    """Y = A B with A ``[..., n, k]`` and B ``[..., k, m]``, each constant or computed; leading axes broadcast.

    A third input is a bias that is added (ONNX has none; a pattern adds it).
    """

    kinds = ("MatMul",)

    def applies(self, node: Node, deduction: Deduction) -> str:
        ranks = [len(deduction.shape(name)) for name in node.inputs]
        return "a vector operand is not known" if min(ranks) < 2 else ""

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        left, right = (deduction.dimensions(name) for name in node.inputs)
        deduction.unify(left[-1], right[-2])
        batch = broadcast((left[:-2], right[:-2]), deduction)
        return [(*batch, left[-2], right[-1])]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        a, b, *bias = arguments
        if bias and b.ndim == 2 and bias[0].numel() == b.shape[1] == bias[0].shape[-1]:
            return F.linear(a, b.mT, bias[0].reshape(-1))
        result: Tensor = torch.matmul(a, b)
        return result + bias[0] if bias else result

    def macs(self, feature: OperatorFeature) -> int:
        return math.prod(feature.outputs[0]) * feature.operands[0][-1]
