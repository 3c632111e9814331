"""The sandwich rule with in-place distillation (Yu et al., 2019; 2020): largest, smallest, and some between."""

from __future__ import annotations

import numpy as np

from autotailor.finetuning.sampling.strategy import Strategy, register
from autotailor.ir.space.subnet import SubNet


@register("sandwich")
class Sandwich(Strategy):
    """Both ends of the space in every step; the largest SubNet teaches the others."""

    in_place = True

    def draw(self, progress: float, random: np.random.Generator) -> tuple[SubNet, ...]:
        """See Strategy."""
        ends = (self.largest(), self.smallest())[: self.count]
        return ends + tuple(self._between(random) for _ in range(self.count - len(ends)))

    def _between(self, random: np.random.Generator) -> SubNet:
        """A SubNet at a random distance from the largest: each variable is left alone with one common probability.

        Drawing all variables for themselves would hardly ever train what lies near the largest SubNet, where single
        modifications are measured and the best SubNets for generous budgets lie.
        """
        drawn, whole = self.independent(random).indices, self.largest().indices
        keeps = random.random(len(whole)) < random.random()
        return SubNet(self.space, tuple(w if keep else d for w, d, keep in zip(whole, drawn, keeps, strict=True)))
