"""Uniform sampling (Guo et al., 2020), with distillation: every choice of a variable is drawn equally often."""

import numpy as np

from autotailor.finetuning.sampling.strategy import Strategy, register
from autotailor.ir.space.subnet import SubNet


@register("uniform")
class Uniform(Strategy):
    """Every SubNet of a step is drawn independently."""

    def draw(self, progress: float, random: np.random.Generator) -> tuple[SubNet, ...]:
        return tuple(self.independent(random) for _ in range(self.count))
