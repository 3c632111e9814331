"""Traces of long inferences under simulated loads, on which the monitor can be developed without a quiet machine."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from autotailor.serving.files import Member

from .loads import Step
from .recording import Recorded

SHARES = (0.08, 0.2, 0.33, 0.45, 0.6, 0.75, 1.0)
"""CPU times of the members, over that of the largest."""
NOISE = 0.015
"""Standard deviation of CPU times, on a logarithmic scale."""
SLOWER = 1.06
"""CPU time beside a co-runner, over that without one: caches."""
TURN_MS, EVENNESS = 3.0, 6.0
"""Mean of a scheduler's turns, and the shape of their gamma distribution."""


def members(largest_ms: float) -> list[Member]:
    """Members whose accuracy grows with the logarithm of their CPU time."""
    found = []
    for number, share in enumerate(SHARES):
        split = (0.7 * share * largest_ms, 0.2 * share * largest_ms, 0.1 * share * largest_ms)
        accuracy = 70 + 10 * math.log(share)
        found.append(
            Member(f"m{number}", accuracy, split, 1, math.nan, "in0", (3, 8, 8), "out0", 4, "0" * 64, "0" * 64)
        )
    return found


def simulated(
    steps: Sequence[Step], seconds: float, largest_ms: float, period_ms: float, rng: np.random.Generator
) -> Recorded:
    """All members in turn, round after round, without a pause.

    Args:
        steps: of the load; either a quota or co-runners in each.
        seconds: of the trace.
        largest_ms: CPU time of the largest member.
        period_ms: of the quota.
        rng: draws noise and turns.
    """
    processor = _Processor(period_ms, rng)
    begins, numbers, wall, cpu = [], [], [], []
    now, at = 0.0, 0
    while now < seconds:
        while at + 1 < len(steps) and steps[at + 1].seconds <= now:
            at += 1
        begins.append(now)
        numbers.append(at)
        slower = SLOWER if steps[at].corunners else 1.0
        cpu.append([slower * share * largest_ms * math.exp(rng.normal(0, NOISE)) for share in SHARES])
        wall.append([processor.wall_ms(each, steps[at]) for each in cpu[-1]])
        now += sum(wall[-1]) / 1000
    return Recorded(
        np.array(begins), np.array(numbers), np.array(wall), np.array(cpu), np.zeros(len(begins)), "simulated"
    )


class _Processor:
    """One core: what is left of the turn and of the period's budget goes on from one inference to the next."""

    def __init__(self, period_ms: float, rng: np.random.Generator) -> None:
        self._period_ms, self._rng = period_ms, rng
        self._used_ms, self._left_ms = 0.0, TURN_MS

    def wall_ms(self, cpu_ms: float, step: Step) -> float:
        """Wall time of an inference of so much CPU time."""
        if step.quota < 1:
            budget = step.quota * self._period_ms
            stops, self._used_ms = divmod(self._used_ms + cpu_ms, budget)
            return cpu_ms + stops * (self._period_ms - budget)
        if not step.corunners:
            return cpu_ms
        self._left_ms -= cpu_ms
        waited = 0.0
        while self._left_ms <= 0:
            waited += step.corunners * self._turn_ms()
            self._left_ms += self._turn_ms()
        return cpu_ms + waited

    def _turn_ms(self) -> float:
        return float(self._rng.gamma(EVENNESS, TURN_MS / EVENNESS))
