"""Half the sandwich rule: each step trains the smallest SubNet and either the largest or a random one, at equal chance.

A step of the sandwich rule (largest, smallest, one between) spends half of its time on the largest SubNet, although
pretraining has already trained it. Here only about half of the steps train the largest SubNet, so that the same time
trains the other SubNets more often.
"""

import numpy as np

from autotailor.finetuning.sampling.sandwich import Sandwich
from autotailor.finetuning.sampling.strategy import register
from autotailor.ir.space.subnet import SubNet


@register("alternating")
class Alternating(Sandwich):
    """The largest SubNet teaches in the steps that draw it, the original network in the other steps."""

    least = 2  # the smallest is the second one

    def draw(self, progress: float, random: np.random.Generator) -> tuple[SubNet, ...]:
        first = self.largest() if random.random() < 0.5 else self.between(random)
        others = (self.smallest(), *(self.between(random) for _ in range(self.count - 2)))
        return (first, *others)[: self.count]
