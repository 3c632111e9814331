"""The sandwich rule with in-place distillation (Yu et al., 2019; 2020): largest, smallest, and some between."""

import numpy as np

from autotailor.finetuning.sampling.strategy import Strategy, register
from autotailor.ir.space.subnet import SubNet


@register("sandwich")
class Sandwich(Strategy):
    """Each step trains the largest, the smallest and random SubNets; the largest teaches the others."""

    in_place = True
    least = 3  # the largest, the smallest, and one between

    def draw(self, progress: float, random: np.random.Generator) -> tuple[SubNet, ...]:
        ends = (self.largest(), self.smallest())[: self.count]
        return ends + tuple(self.between(random) for _ in range(self.count - len(ends)))
