"""The pace of the monitor: how often it may learn, so that its own CPU time stays a small share of the time.

One step of the load model and one decision take some 0.1 ms in Python, which is as much as a small network takes. So
the monitor learns from each inference as long as its allowance lasts. An inference that surprises is learnt from on
credit. Of all others the residual counts, for the quantiles. The allowance grows with the time t that passes, by g t
with

    g = SHARE - (MOST_S + DEBT_S) / WINDOW_S,

so that what is spent in WINDOW_S is at most SHARE of it, savings and debt included, but for the last step.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

SHARE = 0.01
"""CPU time of the monitor, as a share of the time that passes; at most this much in any ``WINDOW_S``."""
WINDOW_S = 4.0
"""Seconds in which the share is kept."""
MOST_S = 0.005
"""The allowance that can be saved up: some forty steps, so that a change after a quiet time is followed closely."""
DEBT_S = 0.005
"""How far surprises may overdraw the allowance."""
GROWTH = SHARE - (MOST_S + DEBT_S) / WINDOW_S
"""By which share of the time that passes the allowance grows."""


@dataclass
class Pace:
    """The allowance.

    Attributes:
        left_s: seconds of CPU time that may be spent now.
        spent_s: seconds spent so far.
    """

    left_s: float = MOST_S
    spent_s: float = 0.0
    _now_s: float | None = None

    def allows(self, now_s: float, is_surprise: bool) -> bool:
        """Whether the monitor may learn now.

        Args:
            now_s: a clock that does not go back.
            is_surprise: whether the inference was far from what had been predicted.
        """
        passed = 0.0 if self._now_s is None else now_s - self._now_s
        self._now_s = now_s
        self.left_s = min(self.left_s + GROWTH * passed, MOST_S)
        return self.left_s > (-DEBT_S if is_surprise else 0.0)

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Notes the CPU time that the block takes."""
        begun = time.thread_time()
        yield
        seconds = time.thread_time() - begun
        self.left_s -= seconds
        self.spent_s += seconds
