"""Every choice of every variable equally often (Guo et al., 2020), with distillation."""

from __future__ import annotations

import numpy as np

from autotailor.finetuning.sampling.strategy import Strategy, register
from autotailor.ir.space.subnet import SubNet


@register("uniform")
class Uniform(Strategy):
    """Every SubNet of a step is drawn for itself."""

    def draw(self, progress: float, random: np.random.Generator) -> tuple[SubNet, ...]:
        """See Strategy."""
        return tuple(self.independent(random) for _ in range(self.count))
