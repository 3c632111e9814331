"""Sampling strategies over the space of a compiled network."""

from typing import Any

import autotailor
from autotailor.finetuning import sampling
from autotailor.finetuning.sampling.strategy import stages_of


def make(name: str, net: autotailor.SuperNet, count: int = 3, **parameters: Any) -> sampling.Strategy:
    """A strategy with its parameters that draws so many SubNets for each step."""
    return sampling.create(name, net.space, stages_of(net.space, net.stages), count, parameters, net.macs)
