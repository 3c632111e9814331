"""Shifts: the thread that prepares members and the thread that runs inferences take turns.

ncnn's Python wheel holds Python's lock while it packs a layer and while it runs an inference. Two threads that only
contend for this lock get it by chance: a waiting inference often wakes up too late, when the preparing thread has the
lock again. So both take explicit turns. A preparation works for ``MOST_S``, or for a small share of an inference where
that is longer, and then lets an inference that waits run first; where none waits, it goes on at once.
"""

from __future__ import annotations

import time

from autotailor.runtime.wire.turns import Turns

MOST_S = 7e-4
"""How long a preparation keeps a short inference waiting, where none of its steps takes longer."""
SHARE = 1 / 40
"""How long it keeps a long one waiting, as a share of the last inference: one of 40 ms waits for 1 ms."""
BYTES_PER_S = 8e9
"""How fast weights are gathered, copied or packed, roughly: what a step will take must be known before it begins."""


class Shift:
    """The work of the preparing thread; only that thread may call it.

    Args:
        turns: shared with the thread that runs inferences.
    """

    def __init__(self, turns: Turns) -> None:
        self._turns, self._begun = turns, 0.0
        self._waited, self._is_on = 0.0, False

    def step(self, size: int) -> None:
        """To be called before a step that handles so many bytes; others run first where it would take too long."""
        most = max(MOST_S, SHARE * self._waited)
        if not self._is_on or time.perf_counter() - self._begun + size / BYTES_PER_S > most:
            self.end()
            ended = time.perf_counter()
            self._turns.__enter__()
            self._is_on, self._begun = True, time.perf_counter()
            self._waited = self._begun - ended

    def end(self) -> None:
        """Lets others run; safe to call twice."""
        if self._is_on:
            self._is_on = False
            self._turns.__exit__(None, None, None)
