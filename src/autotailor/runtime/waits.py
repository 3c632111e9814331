"""Waiting for the processor: how long an inference of so much CPU time is interrupted, found from those that ran.

A scheduler lets a thread run for a slice, and then others run. An inference that is much shorter than a slice is seldom
interrupted, but then for as long as a long one is; a long inference is interrupted in proportion. So waiting is no
share of CPU time. Here the last inferences are laid one behind the other on an axis of CPU time, each interruption at
its place. What an inference of CPU time c waits lies within a window of length c, and windows at all places give its
distribution:

    P(c + waiting <= deadline) = share of the windows [x, x + c) whose interruptions sum to at most deadline - c.

The axis is closed to a ring, so that windows longer than what is remembered exist as well. The waiting of an inference
that had several slices is divided among as many places.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from autotailor.runtime.table import Floats

MOST = 48
"""Inferences that are remembered: with a probability of 0.95, three interrupted ones of them are too many."""
SLICE_MS = 3.0
"""CPU time that a scheduler lets a thread have before others run."""
LEAST_SHARE, LEAST_MS = 0.05, 0.02
"""An inference was interrupted if it waited for more than this share of its CPU time, and for longer than this."""
PLACES = 48
"""Windows of which a distribution is made."""
LENGTHS = np.array([*(2.0**power * part for power in range(-13, 3) for part in (1, 1.5)), 8.0])
"""Lengths of windows, as shares of the whole axis; between them the distribution is interpolated."""


@dataclass(frozen=True, eq=False)
class Waits:
    """The last inferences: their CPU times and how long they waited, in milliseconds, the latest last."""

    cpu_ms: tuple[float, ...] = ()
    waited_ms: tuple[float, ...] = ()

    def observed(self, wall_ms: float, cpu_ms: float) -> Waits:
        """The waits after one more inference."""
        waited = wall_ms - cpu_ms
        if waited <= max(LEAST_SHARE * cpu_ms, LEAST_MS):
            waited = 0.0
        return Waits((*self.cpu_ms[1 - MOST :], cpu_ms), (*self.waited_ms[1 - MOST :], waited))

    @property
    def share(self) -> float:
        """Waiting as a share of CPU time, over all that is remembered."""
        return sum(self.waited_ms) / sum(self.cpu_ms) if self.cpu_ms else 0.0

    def quantile_ms(self, cpu_ms: Floats, q: float) -> Floats:
        """How long inferences wait at most with a probability, ``[n]``.

        Args:
            cpu_ms: their CPU times, ``[n]``.
            q: the probability.
        """
        if not any(self.waited_ms):
            return np.zeros(len(cpu_ms))
        lengths = LENGTHS * sum(self.cpu_ms)
        found: Floats = np.interp(cpu_ms, lengths, self._sums[:, math.ceil(q * PLACES) - 1])
        longer: Floats = found * np.maximum(1.0, cpu_ms / lengths[-1])
        return longer

    @cached_property
    def _sums(self) -> Floats:
        """Waiting within windows, ``[lengths, PLACES]``, rising along the places."""
        cpu, waited = np.array(self.cpu_ms), np.array(self.waited_ms)
        slices = np.where(waited > 0, np.maximum(1, np.round(cpu / SLICE_MS)), 0).astype(np.int64)
        begins = np.repeat(np.cumsum(cpu) - cpu, slices)
        numbers = np.concatenate([np.arange(1, count + 1) for count in slices])
        places = begins + np.repeat(cpu / np.maximum(slices, 1), slices) * numbers
        total = np.concatenate(([0.0], np.cumsum(np.repeat(waited / np.maximum(slices, 1), slices))))
        whole = np.cumsum(cpu)[-1]
        starts = (np.arange(PLACES) + 0.5) / PLACES * whole
        ends = starts + LENGTHS[:, None] * whole

        def until(places_ms: Floats) -> Floats:
            turns, rest = np.divmod(places_ms, whole)
            sums: Floats = turns * total[-1] + total[np.searchsorted(places, rest, side="right")]
            return sums

        return np.sort(until(ends) - until(starts), axis=1)
