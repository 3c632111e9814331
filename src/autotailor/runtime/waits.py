"""Waiting for the processor: how long an inference of so much CPU time is interrupted, found from those that ran.

A scheduler lets a thread run for a slice, and then others run. An inference that is much shorter than a slice is seldom
interrupted, but then for as long as a long one is; a long inference is interrupted in proportion. So waiting is no
share of CPU time. Here the last inferences are laid one behind the other on an axis of CPU time, each interruption at
its place. What an inference of CPU time c waits lies within a window of length c, and windows at all places give its
distribution:

    P(c + waiting <= deadline) = share of the windows [x, x + c) whose interruptions sum to at most deadline - c.

The axis is closed to a ring, so that windows longer than what is remembered exist as well. The waiting of an inference
that had several slices is divided among as many places.

A load that ends would be remembered for all of the axis. What lies before a place is forgotten where interruptions have
become rarer behind it, beyond chance: with n interruptions in the CPU time C before the place and m in D behind it, two
Poisson processes of different rates explain them better than one does by the logarithm of the likelihood ratio

    n ln(n / C) + m ln(m / D) - (n + m) ln((n + m) / (C + D)).

Interruptions that become more frequent are not treated so: what was calm is worth remembering while a burst lasts.

A long inference has so many turns on the processor that its waiting measures the load, and is no luck of a turn. Where
two long inferences, one behind the other but for short ones, both waited longer than any remembered window of their
lengths, or both shorter, the load has made a step (a quota that falls, another co-runner): what came before the first
of the two is forgotten, where it was not all calm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from autotailor.runtime.table import Floats

MOST = 48
"""Inferences that are remembered: with a probability of 0.95, three interrupted ones of them are too many."""
SLICE_MS = 3.0
"""CPU time that a scheduler lets a thread have before others run."""
LEAST_SHARE, LEAST_MS = 0.05, 0.02
"""An inference was interrupted if it waited for more than this share of its CPU time, and for longer than this."""
PLACES = 48
"""Windows of which a distribution is made."""
CALM = 3.0
"""Logarithm of the likelihood ratio (20 to 1) from which fewer interruptions are taken for another load."""
LEAST_SIDE = 2
"""Inferences on either side of a place at which the load may have changed."""
LONG_MS = 3 * SLICE_MS
"""CPU time from which an inference is long."""
LEAST_BEFORE = 8
"""Inferences that must be remembered before a step: two in a row exceed all of them by chance once in (8 + 1)^2."""
LEAST_FORCED = 0.5
"""Waiting comes from a quota where it is at least this share of what the quota forces on a thread that never pauses."""
LENGTHS = np.array([*(2.0**power * part for power in range(-13, 3) for part in (1, 1.5)), 8.0])
"""Lengths of windows, as shares of the whole axis; between them the distribution is interpolated."""


@dataclass(frozen=True)
class Quota:
    """How much CPU time a thread may have (cgroup): when a period's budget is used up, it waits for the next period.

    Attributes:
        cores: CPU time of a period over its length; infinite without a quota.
        period_ms: length of a period.
    """

    cores: float = math.inf
    period_ms: float = 100.0

    @property
    def forced(self) -> float:
        """Waiting of a thread that never pauses, as a share of its CPU time."""
        return max(0.0, 1 / self.cores - 1)

    def of_each(self, threads: int) -> Quota:
        """What is left for each of some threads that compute together."""
        return Quota(self.cores / threads, self.period_ms)


@dataclass(frozen=True, eq=False)
class Waits:
    """The last inferences.

    Attributes:
        cpu_ms: their CPU times, in milliseconds, the latest last.
        waited_ms: how long they waited, in milliseconds.
        is_made: they are what a quota forces, and none of them has run.
    """

    cpu_ms: tuple[float, ...] = ()
    waited_ms: tuple[float, ...] = ()
    is_made: bool = False

    def observed(self, wall_ms: float, cpu_ms: float) -> Waits:
        """The waits after one more inference."""
        waited = wall_ms - cpu_ms
        if waited <= _clocks_ms(cpu_ms):
            waited = 0.0
        return Waits((*self.cpu_ms[1 - MOST :], cpu_ms), (*self.waited_ms[1 - MOST :], waited))

    def since_change(self) -> Waits:
        """The waits under the load of now; all of them where the load has not changed beyond chance."""
        return self._since_calm()._since_step()

    def _since_calm(self) -> Waits:
        """The waits since interruptions have become rarer; all of them where they have not."""
        if not any(self.waited_ms):
            return self
        cpu, slices = np.cumsum(self.cpu_ms), np.cumsum(self._slices, dtype=np.float64)
        sides = slice(LEAST_SIDE - 1, len(cpu) - LEAST_SIDE)
        before, n = cpu[sides], slices[sides]
        behind, m = cpu[-1] - before, slices[-1] - n
        gains = _score(n, before) + _score(m, behind) - _score(slices[-1:], cpu[-1:])
        gains[m * before >= n * behind] = 0.0
        if not len(gains) or gains.max() <= CALM:
            return self
        return self._from(int(gains.argmax()) + LEAST_SIDE)

    def _since_step(self) -> Waits:
        """The waits from the first of two long inferences on that both waited longer, or shorter, than all before."""
        long = [place for place, cpu in enumerate(self.cpu_ms) if cpu >= LONG_MS][-2:]
        if len(long) < 2 or long[0] < LEAST_BEFORE or long[1] + 1 < len(self.cpu_ms):
            return self
        if not any(self.waited_ms[: long[0]]):
            return self
        before = Waits(self.cpu_ms[: long[0]], self.waited_ms[: long[0]])
        cpu, waited = (np.array([values[place] for place in long]) for values in (self.cpu_ms, self.waited_ms))
        clocks = np.array([_clocks_ms(each) for each in cpu])
        is_longer = bool((waited > before.quantile_ms(cpu, 1.0) + clocks).all())
        is_shorter = bool((waited < before.quantile_ms(cpu, 1 / PLACES) - clocks).all())
        return self._from(long[0]) if is_longer or is_shorter else self

    def _from(self, first: int) -> Waits:
        return Waits(self.cpu_ms[first:], self.waited_ms[first:])

    def under_quota(self, before: Quota, after: Quota) -> Waits:
        """The waits as they would have been under another quota, where they come from the quota before.

        Where much less waiting is remembered than the quota before forces on a thread that never pauses, the thread
        pauses and keeps within the quota, and the waits say nothing of it. Where no long inference is remembered, the
        waits say more than the quota does: the scheduler divides budgets by its own clock, which only long ones level.
        """
        if before.forced == 0 or self.share < LEAST_FORCED * before.forced:
            return self
        if max(self.cpu_ms) < LONG_MS and not self.is_made:
            return self
        return _throttled(after) if after.forced else Waits(self.cpu_ms, (0.0,) * len(self.cpu_ms))

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
        above = np.searchsorted(lengths, [cpu_ms.min(), cpu_ms.max()])
        first, end = max(0, int(above[0]) - 1), int(above[1]) + 1  # the others are not needed, and take time
        if (first, end) not in self._known:
            self._known[first, end] = self._sums(LENGTHS[first:end])
        found: Floats = np.interp(cpu_ms, lengths[first:end], self._known[first, end][:, math.ceil(q * PLACES) - 1])
        longer: Floats = found * np.maximum(1.0, cpu_ms / lengths[-1])
        return longer

    @cached_property
    def _slices(self) -> npt.NDArray[np.int64]:
        """How often each inference was interrupted."""
        cpu, waited = np.array(self.cpu_ms), np.array(self.waited_ms)
        return np.where(waited > 0, np.maximum(1, np.round(cpu / SLICE_MS)), 0).astype(np.int64)

    @cached_property
    def _known(self) -> dict[tuple[int, int], Floats]:
        """Sums of windows that have been asked for, by the first of ``LENGTHS`` and the one behind the last."""
        return {}

    @cached_property
    def _stops(self) -> tuple[Floats, Floats]:
        """Places of the ``n`` interruptions on the axis, ``[n]``, and waiting up to and with each, ``[n + 1]``."""
        cpu, waited, slices = np.array(self.cpu_ms), np.array(self.waited_ms), self._slices
        own = np.repeat(np.arange(len(cpu)), slices)  # the inference of each interruption
        numbers = np.arange(1, len(own) + 1) - (np.cumsum(slices) - slices)[own]
        parts = np.maximum(slices, 1)
        places = (np.cumsum(cpu) - cpu)[own] + (cpu / parts)[own] * numbers
        return places, np.concatenate(([0.0], np.cumsum((waited / parts)[own])))

    def _sums(self, lengths: Floats) -> Floats:
        """Waiting within windows, ``[n, PLACES]``, rising along the places.

        Args:
            lengths: of the windows, as shares of the axis, ``[n]``.
        """
        places, total = self._stops
        whole = sum(self.cpu_ms)
        starts = (np.arange(PLACES) + 0.5) / PLACES * whole
        ends = starts + lengths[:, None] * whole

        def until(places_ms: Floats) -> Floats:
            turns = np.floor(places_ms / whole)
            sums: Floats = turns * total[-1] + total[np.searchsorted(places, places_ms - turns * whole, side="right")]
            return sums

        return np.sort(until(ends) - until(starts), axis=1)


def _throttled(quota: Quota) -> Waits:
    """What is remembered of a thread that never pauses: each period's budget, then waiting for the next period."""
    budget = quota.cores * quota.period_ms
    count = min(max(1, math.ceil(budget / SLICE_MS)), MOST)  # parts of one slice, so that all waiting is in one place
    periods = MOST // count
    waited = (0.0,) * (count - 1) + (quota.period_ms - budget,)
    return Waits((budget / count,) * count * periods, waited * periods, is_made=True)


def _clocks_ms(cpu_ms: float) -> float:
    """What wall and CPU time of an inference differ by without any waiting, at most."""
    return max(LEAST_SHARE * cpu_ms, LEAST_MS)


def _score(count: Floats, cpu_ms: Floats) -> Floats:
    """Logarithm of the likelihood of so many interruptions in so much CPU time, but for what all of them share."""
    scores: Floats = count * np.log(np.maximum(count, 1) / cpu_ms)
    return scores
