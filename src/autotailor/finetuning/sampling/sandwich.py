"""The sandwich rule with in-place distillation (Yu et al., 2019; 2020): largest, smallest, and some between."""

from __future__ import annotations

import numpy as np

from autotailor.finetuning.sampling.strategy import Strategy, register
from autotailor.ir.space.subnet import SubNet


@register("sandwich")
class Sandwich(Strategy):
    """Each step trains the largest, the smallest and random SubNets; the largest teaches the others."""

    in_place = True

    def draw(self, progress: float, random: np.random.Generator) -> tuple[SubNet, ...]:
        """See Strategy."""
        ends = (self.largest(), self.smallest())[: self.count]
        return ends + tuple(self._between(random) for _ in range(self.count - len(ends)))

    def _between(self, random: np.random.Generator) -> SubNet:
        """A SubNet at a random distance from the largest: each variable stays unmodified with a common probability.

        Independent draws of all variables would hardly ever give a SubNet near the largest one. Such SubNets matter:
        sensitivities are measured at single modifications, and the best SubNets for generous budgets have few.
        """
        drawn, whole = self.independent(random).indices, self.largest().indices
        keeps = random.random(len(whole)) < random.random()
        return SubNet(self.space, tuple(w if keep else d for w, d, keep in zip(whole, drawn, keeps, strict=True)))
