"""Normalisation: with stored statistics (BatchNormalization), or with the statistics of each image."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from autotailor.ir.dimensions.dimension import Constant, product
from autotailor.ir.feature import Attributes, freeze_attributes
from autotailor.ir.graph import Node
from autotailor.ir.operators.pointwise.elementwise import SameShapeRule
from autotailor.ir.operators.rule import Deduction, Dimensions, OperatorRule, Tensor, register

EPSILON = 1e-5


class NormalizationRule(OperatorRule):
    """Base of normalisations with gains and shifts; dimensions pass."""

    def applies(self, node: Node, deduction: Deduction) -> str:
        constant = all(deduction.is_weight(name) for name in node.inputs[1:] if name)
        return "" if constant else "its gains or statistics are computed, not constant"

    def run_time_attributes(self, node: Node) -> Attributes:
        return freeze_attributes({"epsilon": node.get("epsilon", EPSILON)})


class ChannelNormalizationRule(NormalizationRule):
    """Base of normalisations with a gain and a shift for each channel: x is ``[n, c, ...]``, other inputs ``[c]``."""

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = deduction.dimensions(node.inputs[0])
        for name in node.inputs[1:]:
            deduction.declare(name, (x[1],))
        return [x]


@register
class BatchNormalizationRule(ChannelNormalizationRule):
    """Inputs: x, gain, shift, running mean, running variance."""

    kinds = ("BatchNormalization",)
    statistics = (3, 4)

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x, gain, shift, mean, variance = arguments
        return F.batch_norm(x, mean, variance, gain, shift, training=False, eps=node.get("epsilon", EPSILON))


@register
class LayerNormalizationRule(NormalizationRule):
    """Over the axes from ``axis`` to the last; gain and shift have the shape of these axes, or of the last of them."""

    kinds = ("LayerNormalization", "RMSNormalization")

    def applies(self, node: Node, deduction: Deduction) -> str:
        if any(node.outputs[1:]):
            return "a second output (its statistics) is not known"
        return super().applies(node, deduction)

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = deduction.dimensions(node.inputs[0])
        for name in node.inputs[1:]:
            if name:
                shape = deduction.shape(name)
                tail = x[len(x) - len(shape) :]
                deduction.declare(name, tuple(Constant(1) if s == 1 else d for s, d in zip(shape, tail, strict=True)))
        return [x]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x, gain, shift = (*arguments, None)[:3]
        normal = x.shape[node.get("axis", -1) % x.ndim :]
        epsilon = node.get("epsilon", EPSILON)
        if gain.shape == normal and node.kind == "LayerNormalization" and (shift is None or shift.shape == normal):
            return F.layer_norm(x, normal, gain, shift, epsilon)
        normalise = F.rms_norm if node.kind == "RMSNormalization" else F.layer_norm
        result: Tensor = normalise(x, normal, eps=epsilon) * gain
        return result if shift is None else result + shift

    def run_time_attributes(self, node: Node) -> Attributes:
        return freeze_attributes({"axis": node.get("axis", -1), "epsilon": node.get("epsilon", EPSILON)})

    def opset(self, node: Node) -> int:
        return 23 if node.kind == "RMSNormalization" else super().opset(node)


@register
class GroupNormalizationRule(ChannelNormalizationRule):
    """Over groups of channels (opset 21: gain and shift are ``[c]``).

    The number of groups stays; channels come and go in all of them alike.
    """

    kinds = ("GroupNormalization",)

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = deduction.dimensions(node.inputs[0])
        groups = node.get("num_groups")
        in_group = deduction.fresh(node, x[1].meta // groups, "in")
        deduction.unify(x[1], product((Constant(groups), in_group)))
        return super().deduce(node, deduction)

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x, gain, shift = arguments
        return torch.group_norm(x, node.get("num_groups"), gain, shift, node.get("epsilon", EPSILON))

    def run_time_attributes(self, node: Node) -> Attributes:
        return freeze_attributes({"num_groups": node.get("num_groups"), "epsilon": node.get("epsilon", EPSILON)})

    def opset(self, node: Node) -> int:
        return 21


@register
class InstanceNormalizationRule(ChannelNormalizationRule):
    """Normalises each channel of each image over the spatial axes."""

    kinds = ("InstanceNormalization",)

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x, gain, shift = arguments
        return torch.group_norm(x, x.shape[1], gain, shift, node.get("epsilon", EPSILON))


@register
class LocalResponseRule(SameShapeRule):
    """Local response normalisation over ``size`` neighbouring channels (Krizhevsky et al., 2012)."""

    kinds = ("LRN",)

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x: Tensor = arguments[0]
        size = node.get("size")
        squares = F.pad(x.square().movedim(1, -1), ((size - 1) // 2, size // 2))
        sums = squares.unfold(-1, size, 1).sum(-1).movedim(-1, 1)
        result: Tensor = x / (node.get("bias", 1.0) + node.get("alpha", 1e-4) / size * sums) ** node.get("beta", 0.75)
        return result

    def run_time_attributes(self, node: Node) -> Attributes:
        return freeze_attributes({"size": node.get("size")})


@register
class LpNormalizationRule(SameShapeRule):
    """Division by the norm along an axis."""

    kinds = ("LpNormalization",)

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x: Tensor = arguments[0]
        norm = torch.linalg.vector_norm(x, node.get("p", 2), node.get("axis", -1), keepdim=True)
        return torch.where(norm == 0, torch.zeros_like(x), x / norm)

    def run_time_attributes(self, node: Node) -> Attributes:
        return freeze_attributes({"axis": node.get("axis", -1), "p": node.get("p", 2)})


@register
class MeanVarianceRule(SameShapeRule):
    """Mean 0 and variance 1 over some axes, without gains."""

    kinds = ("MeanVarianceNormalization",)

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x: Tensor = arguments[0]
        variance, mean = torch.var_mean(x, node.get("axes", (0, 2, 3)), correction=0, keepdim=True)
        return (x - mean) / (variance.sqrt() + 1e-9)

    def run_time_attributes(self, node: Node) -> Attributes:
        return freeze_attributes({"axes": node.get("axes", (0, 2, 3))})
