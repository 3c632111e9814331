"""A sampling strategy for SubNets that are known before the training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autotailor.finetuning.sampling.strategy import Strategy
from autotailor.ir.space.subnet import SubNet


class Listed(Strategy):
    """Each SubNet of a step is one of a list, all equally likely. No configuration names this strategy.

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
        return tuple(self._subnets[int(random.integers(len(self._subnets)))] for _ in range(self.count))
