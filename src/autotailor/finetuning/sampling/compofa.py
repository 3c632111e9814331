"""CompOFA (Sahni et al., 2021; the paper's strategy): the dimensions of a stage grow and shrink together."""

import numpy as np

from autotailor.finetuning.sampling.strategy import Strategy, by_size, register
from autotailor.ir.space.subnet import SubNet


@register("compofa")
class CompOFA(Strategy):
    """One level per stage sets the stage's depth, width and block ratios; the resolution is drawn independently.

    With two depths and three ratios, level 0 stands for (deep, wide) and level 1 for (shallow, narrow). The number of
    SubNets that share the weights falls from the product of all choices to a few levels per stage.
    """

    def draw(self, progress: float, random: np.random.Generator) -> tuple[SubNet, ...]:
        return tuple(self._compound(random) for _ in range(self.count))

    def _compound(self, random: np.random.Generator) -> SubNet:
        levels = {stage: self._level(stage, random) for stage in sorted(set(self.stages.values()))}
        indices = []
        for variable in self.space:
            order = by_size(variable)
            stage = self.stages.get(variable.name)
            level = levels[stage] if stage is not None else random.random()
            indices.append(order[min(len(order) - 1, int(level * len(order)))])
        return SubNet(self.space, tuple(indices))

    def _level(self, stage: str, random: np.random.Generator) -> float:
        """Middle of a random interval of 0 to 1, of as many as the stage's longest list of choices has entries."""
        longest = max(len(v.choices) for v in self.space if self.stages.get(v.name) == stage)
        return (int(random.integers(longest)) + 0.5) / longest
