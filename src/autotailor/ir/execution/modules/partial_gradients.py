"""Gradients of shared weights, each for the smallest block of its weight that holds what SubNets take of the weight.

A small SubNet takes a tenth of the weights of a large network. Gradients in the shape of the whole weights would mostly
hold zeros, which are allocated, written, read by the norm of gradients, by the optimizer and by other processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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

    def block(self) -> Tensor:
        """The region with this gradient, a tensor in the weight's memory; the weight itself if the region is whole."""
        block = self.weight if self.is_whole else view(self.weight.detach(), self.region).requires_grad_()
        block.grad = self.value.reshape(block.shape)
        return block

    def spread(self) -> None:
        """Sets the gradient of the whole weight."""
        self.weight.grad = self._of((None,) * self.weight.ndim)

    def plus(self, other: PartialGradient) -> PartialGradient:
        """The sum with another gradient of the same weight; the memory of this gradient may hold the sum."""
        region = union(self.region, other.region)
        return PartialGradient(self.weight, region, self._of(region).add_(other._of(region)))

    def _of(self, region: Region) -> Tensor:
        """The gradient of a region that holds this one's."""
        return in_region(self.region, self.value, region, self.weight.shape)


class PartialGradients:
    """The gradients that one step has added up so far."""

    def __init__(self) -> None:
        self._of: dict[Tensor, PartialGradient] = {}

    def __iter__(self) -> Iterator[PartialGradient]:
        """One for each weight, in the order in which the weights got gradients."""
        return iter(self._of.values())

    def add(self, weight: Tensor, plan: WeightPlan, value: Tensor) -> None:
        """Adds the gradient of what a plan takes of a weight.

        Args:
            weight: as a whole.
            plan: of what is taken.
            value: gradient of what ``take_tensor`` returns; its memory may hold the sum.
        """
        region = region_of(plan)
        found = PartialGradient(weight, region, in_region(plan, value, region, weight.shape))
        self._of[weight] = self._of[weight].plus(found) if weight in self._of else found

    def spread(self) -> None:
        """Sets the gradients of whole weights."""
        for gradient in self:
            gradient.spread()

    def clear(self) -> None:
        """Forgets all gradients."""
        self._of.clear()
