"""The monitor: what the wall and CPU times of the inferences so far say of the next one.

CPU time is that of the load model, and a quantile of measured over predicted CPU time says how far it varies. Waiting
for the processor is added, because it does not grow with CPU time alone (``waits``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from autotailor.runtime.errors import PoolError
from autotailor.runtime.forecast import Forecast
from autotailor.runtime.load import LoadModel
from autotailor.runtime.table import Floats
from autotailor.runtime.waits import Waits

RESIDUALS = 32
"""Last inferences whose measured CPU time, over the predicted one, gives the quantiles of the next."""
SURPRISE = 0.5
"""A residual this far from 1 on a logarithmic scale is a surprise."""
CHANGE = 2
"""Surprises in a row, all to the same side, that mean a step of the load: what came before no longer counts."""


@dataclass(frozen=True, eq=False)
class Monitor:
    """The state of the monitor; ``observed`` returns the state after one more inference.

    Attributes:
        load: slowdown of each class of operators.
        forecast: of the slowdown of CPU time.
        residuals: measured over predicted CPU time of the last inferences, each predicted before it was measured.
        waits: waiting for the processor.
    """

    load: LoadModel = field(default_factory=LoadModel)
    forecast: Forecast = field(default_factory=Forecast)
    residuals: tuple[float, ...] = ()
    waits: Waits = field(default_factory=Waits)

    def observed(self, split_ms: Floats, wall_ms: float, cpu_ms: float) -> Monitor:
        """The state after one more inference.

        Args:
            split_ms: unloaded latency of the member's operators, by class, ``[3]``.
            wall_ms: of the inference.
            cpu_ms: of the inference, all its threads together divided by their number.

        Raises:
            PoolError: a time is not positive.
        """
        if not (wall_ms > 0 and cpu_ms > 0):
            raise PoolError(f"an inference takes positive times, not {wall_ms} ms of wall and {cpu_ms} ms of CPU time")
        noted = self.noted(cpu_ms / float(self.cpu_ms(split_ms[None])[0]), wall_ms, cpu_ms)
        noted = replace(noted, waits=noted.waits.since_change())
        load, forecast, residuals = self.load, self.forecast, noted.residuals
        if _is_step(residuals):
            load = LoadModel.at(cpu_ms / float(split_ms.sum()), max(0.0, wall_ms / cpu_ms - 1), load.forgetting)
            forecast, residuals = Forecast(), ()
        elif _is_surprise(residuals[-1]):  # alone, it may be an accident
            return noted
        load = load.observed(split_ms, wall_ms, cpu_ms)
        return Monitor(load, forecast.observed(load.ratio), residuals, noted.waits)

    def noted(self, residual: float, wall_ms: float, cpu_ms: float) -> Monitor:
        """The state after an inference from which the load model does not learn: it costs a few microseconds.

        Args:
            residual: measured over predicted CPU time.
            wall_ms: of the inference.
            cpu_ms: of the inference.
        """
        residuals = (*self.residuals[-RESIDUALS + 1 :], residual)
        return Monitor(self.load, self.forecast, residuals, self.waits.observed(wall_ms, cpu_ms))

    def cpu_ms(self, split_ms: Floats, steps: int = 1) -> Floats:
        """CPU time of members some inferences on: ``[n, 3]`` to ``[n]``."""
        return self.load.cpu_ms(split_ms) * self.forecast.factor(steps)

    def predicted_ms(self, split_ms: Floats, steps: int = 1) -> Floats:
        """Mean wall time of members some inferences on: ``[n, 3]`` to ``[n]``."""
        return self.cpu_ms(split_ms, steps) * (1 + self.waits.share)

    def bounds_ms(self, split_ms: Floats, q: float, steps: int = 1) -> Floats:
        """Wall time that members do not exceed with probability ``q``, some inferences on: ``[n, 3]`` to ``[n]``."""
        cpu = self.cpu_ms(split_ms, steps) * self.quantile(q)
        return cpu + self.waits.quantile_ms(cpu, q)

    def quantile(self, q: float) -> float:
        """What at least a share ``q`` of the last CPU times were below, as a multiple of what had been predicted.

        The prediction itself counts as one more, so that the quantile is 1 before the first inference.
        """
        ordered = sorted((*self.residuals, 1.0))
        return ordered[math.ceil(q * len(ordered)) - 1]


def _is_surprise(residual: float) -> bool:
    return abs(math.log(residual)) > SURPRISE


def _is_step(residuals: tuple[float, ...]) -> bool:
    """Whether the last residuals are surprises to the same side."""
    last = np.log(residuals[-CHANGE:])
    return len(last) == CHANGE and bool((last > SURPRISE).all() or (last < -SURPRISE).all())
