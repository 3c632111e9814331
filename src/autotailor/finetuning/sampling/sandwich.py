"""The sandwich rule with in-place distillation (Yu et al., 2019; 2020): largest, smallest, and some between."""

from __future__ import annotations

import numpy as np

from autotailor.finetuning.sampling.strategy import Strategy, register
from autotailor.ir.subnet import SubNet


@register("sandwich")
class Sandwich(Strategy):
    """Both ends of the space in every step; the largest SubNet teaches the others."""

    in_place = True

    def draw(self, progress: float, random: np.random.Generator) -> tuple[SubNet, ...]:
        """See Strategy."""
        ends = (self.largest(), self.smallest())[: self.count]
        return ends + tuple(self.independent(random) for _ in range(self.count - len(ends)))
