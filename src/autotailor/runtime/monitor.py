"""The monitor: what the wall and CPU times of the inferences so far say of the next one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from autotailor.runtime.forecast import Forecast
from autotailor.runtime.load import LoadModel
from autotailor.runtime.table import Floats

RESIDUALS = 32
"""Last inferences whose measured latency, over the predicted one, gives the quantiles of the next."""
SURPRISE = 0.5
"""A residual this far from 1 on a logarithmic scale is a surprise."""
CHANGE = 2
"""Surprises in a row, all to the same side, that mean a step of the load: what came before no longer counts."""


@dataclass(frozen=True, eq=False)
class Monitor:
    """The state of the monitor; ``observed`` returns the state after one more inference.

    Attributes:
        load: slowdown of each class of operators, and waiting.
        forecast: of the slowdown of wall time.
        residuals: measured over predicted latency of the last inferences, each predicted before it was measured.
    """

    load: LoadModel = field(default_factory=LoadModel)
    forecast: Forecast = field(default_factory=Forecast)
    residuals: tuple[float, ...] = ()

    def observed(self, split_ms: Floats, wall_ms: float, cpu_ms: float) -> Monitor:
        """The state after one more inference, see ``LoadModel.observed``."""
        residual = wall_ms / float(self.predicted_ms(split_ms[None])[0])
        residuals = (*self.residuals[-RESIDUALS + 1 :], residual)
        load, forecast = self.load, self.forecast
        if _is_step(residuals):
            load = LoadModel.at(cpu_ms / float(split_ms.sum()), max(0.0, wall_ms / cpu_ms - 1), load.forgetting)
            forecast, residuals = Forecast(), ()
        load = load.observed(split_ms, wall_ms, cpu_ms)
        forecast = forecast.observed(load.ratio * (1 + load.waiting))
        return Monitor(load, forecast, residuals)

    def noted(self, residual: float) -> Monitor:
        """The state after an inference of which only the residual counts: it costs a few microseconds.

        Args:
            residual: measured over predicted latency.
        """
        return Monitor(self.load, self.forecast, (*self.residuals[-RESIDUALS + 1 :], residual))

    def predicted_ms(self, split_ms: Floats, steps: int = 1) -> Floats:
        """Wall time of members some inferences on: ``[n, 3]`` to ``[n]``."""
        return self.load.wall_ms(split_ms) * self.forecast.factor(steps)

    def quantile(self, q: float) -> float:
        """What at least a share ``q`` of the last latencies were below, as a multiple of what had been predicted.

        The prediction itself counts as one more latency, so that the quantile is 1 before the first inference.
        """
        ordered = sorted((*self.residuals, 1.0))
        return ordered[math.ceil(q * len(ordered)) - 1]


def _is_step(residuals: tuple[float, ...]) -> bool:
    """Whether the last residuals are surprises to the same side."""
    last = np.log(residuals[-CHANGE:])
    return len(last) == CHANGE and bool((last > SURPRISE).all() or (last < -SURPRISE).all())
