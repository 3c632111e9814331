"""Half the sandwich rule: the smallest SubNet in every step, beside the largest or, by equal chance, a random one.

A step of the sandwich (largest, smallest, one between) spends half of its time on the largest SubNet, which comes from
training that is over. Here about half of the steps do, so that the same time trains the others more often.
"""

from __future__ import annotations

import numpy as np

from autotailor.finetuning.sampling.sandwich import Sandwich
from autotailor.finetuning.sampling.strategy import register
from autotailor.ir.space.subnet import SubNet


@register("alternating")
class Alternating(Sandwich):
    """The largest SubNet teaches where it is drawn, the original network elsewhere."""

    def draw(self, progress: float, random: np.random.Generator) -> tuple[SubNet, ...]:
        """See Strategy."""
        first = self.largest() if random.random() < 0.5 else self._between(random)
        others = (self.smallest(), *(self._between(random) for _ in range(self.count - 2)))
        return (first, *others)[: self.count]
