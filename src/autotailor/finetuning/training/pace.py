"""How fast a training goes, and how long it still takes."""

from __future__ import annotations

import time
from datetime import timedelta


class Pace:
    """Clocks of a training in this process.

    Args:
        steps: that remain when the process begins.
    """

    def __init__(self, steps: int) -> None:
        self._remaining, self._done, self._images = steps, 0, 0
        self._began = self._resumed = time.monotonic()
        self._seconds = 0.0

    def step(self, images: int) -> None:
        """Counts a step with so many images, which ends now."""
        self._done, self._images = self._done + 1, self._images + images
        now = time.monotonic()
        self._seconds, self._resumed = self._seconds + now - self._resumed, now

    def resume(self) -> None:
        """Leaves the time since the last step out of the rate, because it was spent on something else."""
        self._resumed = time.monotonic()

    def rate(self) -> float:
        """Training images per second since the last call; 0 where there was no step."""
        rate = self._images / self._seconds if self._seconds > 0 else 0.0
        self._images, self._seconds = 0, 0.0
        return rate

    def left(self) -> timedelta:
        """Time that the remaining steps take if they and what comes between them take as long as so far."""
        each = (time.monotonic() - self._began) / max(1, self._done)
        return timedelta(seconds=round(each * (self._remaining - self._done)))
