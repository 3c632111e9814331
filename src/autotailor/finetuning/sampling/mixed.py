"""Shares of the largest, the smallest and random SubNets, at one random resolution in each step.

Once-for-All (Cai et al., 2020) draws one resolution for each batch; BigNAS (Yu et al., 2020) and AlphaNet (Wang et al.,
2021) train largest : smallest : between = 1 : 1 : 2. Here each SubNet of a step is drawn by such shares. With one
SubNet per step, as in single-path training (Guo et al., 2020), the same forward and backward passes give twice as many
steps of the optimiser as with two SubNets.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Annotated

import numpy as np

from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.sampling.strategy import Strategy, register
from autotailor.ir.dimensions.dimension import RESOLUTION
from autotailor.ir.space.metric import Metric
from autotailor.ir.space.subnet import SubNet, stack
from autotailor.sections import Section
from autotailor.values import OneOf, Share, UnfitError

BETWEEN = ("distance", "macs")
DRAWS = 16


class MixedParameters(Section, of="finetune.sampling", error=TrainingError):
    """Section ``finetune.sampling`` of the strategy ``mixed``.

    Attributes:
        largest: share of the largest SubNet among those that are trained, at the resolution of the step.
        smallest: share of the smallest SubNet, at the resolution of the step. All others lie between.
        between: how the others are drawn. ``distance`` modifies each variable with a common random probability,
            ``macs`` takes of 16 such SubNets the one nearest to a number of MACs that is drawn uniformly.
    """

    largest: Share = 0.25
    smallest: Share = 0.2
    between: Annotated[str, OneOf(*BETWEEN)] = "distance"

    def __post_init__(self) -> None:
        if self.largest + self.smallest > 1:
            raise UnfitError(
                "largest",
                f"{self.largest} and smallest {self.smallest} are shares of all SubNets; their sum must be at most 1",
            )


@register("mixed")
class Mixed(Strategy):
    """All SubNets of a step have one resolution, which is drawn uniformly; the original network teaches."""

    section = MixedParameters
    parameters: MixedParameters

    def draw(self, progress: float, random: np.random.Generator) -> tuple[SubNet, ...]:
        at = self._resolution(random)
        return tuple(at(self._one(at, random)) for _ in range(self.count))

    def _resolution(self, random: np.random.Generator) -> Callable[[SubNet], SubNet]:
        """A function that gives a SubNet the step's resolution; SubNets of a space without resolutions stay as is."""
        position = self.space.positions.get(RESOLUTION)
        if position is None:
            return lambda subnet: subnet
        index = int(random.integers(len(self.space.variables[position].choices)))
        return lambda s: SubNet(self.space, (*s.indices[:position], index, *s.indices[position + 1 :]))

    def _one(self, at: Callable[[SubNet], SubNet], random: np.random.Generator) -> SubNet:
        point = random.random()
        if point < self.parameters.largest:
            return self.largest()
        if point < self.parameters.largest + self.parameters.smallest:
            return self.smallest()
        return self.between(random) if self.parameters.between == "distance" else self._by_macs(at, random)

    def _by_macs(self, at: Callable[[SubNet], SubNet], random: np.random.Generator) -> SubNet:
        """Of ``DRAWS`` SubNets the one nearest to a uniform number of MACs at the step's resolution."""
        low, high = self._cost.predict(stack([at(self.smallest()), at(self.largest())]))
        target = random.uniform(low, high)
        drawn = [at(self.between(random)) for _ in range(DRAWS)]
        return drawn[int(np.argmin(np.abs(self._cost.predict(stack(drawn)) - target)))]

    @cached_property
    def _cost(self) -> Metric:
        if self._macs is None:
            raise TrainingError("strategy 'mixed' with between: macs needs the metric of MACs; give it to create()")
        return self._macs()
