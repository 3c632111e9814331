"""Gradients of shared weights, each for the smallest region of its weight that holds what SubNets take of the weight.

A small SubNet takes a tenth of the weights of a large network. Gradients in the shape of the whole weights would mostly
hold zeros, which are allocated, written, read by the norm of gradients, by the optimizer and by other processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from autotailor.ir.execution.weight_plan import Region, WeightPlan, in_region, region_of, union, view
from autotailor.ir.operators.rule import Tensor


@dataclass(frozen=True, eq=False)
class PartialGradient:
    """The gradient of one weight.

    Attributes:
        weight: as a whole.
        region: of the weight; the gradient is zero outside of it.
        value: in the shape of the region, with one axis for each axis of the weight.
    """

    weight: Tensor
    region: Region
    value: Tensor

    @property
    def is_whole(self) -> bool:
        """Whether the region is the whole weight."""
        return not any(self.region)

    def leaf(self) -> Tensor:
        """The region with this gradient, a tensor in the weight's memory; the weight itself if the region is whole."""
        leaf = self.weight if self.is_whole else view(self.weight.detach(), self.region)
        leaf.grad = self.value.reshape(leaf.shape)
        return leaf

    def whole(self) -> Tensor:
        """The gradient of the whole weight, which lies in memory as the weight does (fused optimizers need this)."""
        if self.is_whole and self.value.stride() == self.weight.stride():
            return self.value
        whole = torch.zeros_like(self.weight)
        region = view(whole, self.region)
        region.copy_(self.value.reshape(region.shape))
        return whole

    def plus(self, other: PartialGradient) -> PartialGradient:
        """The sum with another gradient of the same weight; the memory of this gradient may hold the sum."""
        shape = self.weight.shape
        region = union(self.region, other.region, shape)
        one, two = (in_region(each.region, each.value, region, shape) for each in (self, other))
        return PartialGradient(self.weight, region, one.add_(two))


class PartialGradients:
    """The gradients that one step has added up so far."""

    def __init__(self) -> None:
        self._by_weight: dict[Tensor, PartialGradient] = {}

    def __iter__(self) -> Iterator[PartialGradient]:
        """One for each weight, in the order in which the weights got gradients."""
        return iter(self._by_weight.values())

    def add(self, weight: Tensor, plan: WeightPlan, value: Tensor) -> None:
        """Adds the gradient of what a plan takes of a weight.

        Args:
            weight: as a whole.
            plan: of what is taken.
            value: gradient of what ``take_tensor`` returns; its memory may hold the sum.
        """
        region, earlier = region_of(plan), self._by_weight.get(weight)
        # A slice that autocast interpolates is in half precision, and so is its gradient.
        value = value.to(weight.dtype)
        gradient = PartialGradient(weight, region, in_region(plan, value, region, weight.shape))
        self._by_weight[weight] = gradient if earlier is None else earlier.plus(gradient)

    def hand_over(self) -> None:
        """Gives the weights gradients as a whole, and keeps none."""
        for gradient in self:
            gradient.weight.grad = gradient.whole()
        self.clear()

    def clear(self) -> None:
        """Forgets all gradients."""
        self._by_weight.clear()
