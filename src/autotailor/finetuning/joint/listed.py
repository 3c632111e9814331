"""A sampling strategy for SubNets that are known before the training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autotailor.finetuning.sampling.strategy import Strategy
from autotailor.ir.space.subnet import SubNet

LARGEST_SHARE = 0.25
"""Probability of the largest SubNet, as in ``mixed``: it may teach the others, and runs on a device without load."""


class Listed(Strategy):
    """Each SubNet of a step is the largest or one of a list, all of the list equally likely.

    No configuration names this strategy.

    Args:
        subnets: the list, of one space.
        count: SubNets per step.
    """

    def __init__(self, subnets: Sequence[SubNet], count: int) -> None:
        super().__init__(subnets[0].space, {}, count)
        self._subnets = tuple(subnets)

    @property
    def identity(self) -> tuple[str, ...]:
        """See Strategy."""
        return tuple(subnet.id for subnet in self._subnets)

    def draw(self, progress: float, random: np.random.Generator) -> tuple[SubNet, ...]:
        """See Strategy."""
        return tuple(self._one(random) for _ in range(self.count))

    def _one(self, random: np.random.Generator) -> SubNet:
        if random.random() < LARGEST_SHARE:
            return self.largest()
        return self._subnets[int(random.integers(len(self._subnets)))]
