"""How fast a training goes, and how long it still takes."""

import time
from datetime import timedelta

TIMED = 2
"""The step, counted from 1, by which the cost of a training is told."""
SLOW = 10.0
"""Images per second below which a rate is said with decimals."""


class Pace:
    """Clocks of a training in this process.

    Args:
        steps: that remain when the process begins.
    """

    def __init__(self, steps: int) -> None:
        self._remaining, self._done, self._images = steps, 0, 0
        self._began = self._resumed = time.monotonic()
        self._seconds, self._last = 0.0, 0.0

    def step(self, images: int) -> None:
        """Counts a step with so many images, which ends now."""
        self._done, self._images = self._done + 1, self._images + images
        now = time.monotonic()
        self._last = now - self._resumed
        self._seconds, self._resumed = self._seconds + self._last, now

    def resume(self) -> None:
        """Leaves the time since the last step out of the rate, because it was spent on something else."""
        self._resumed = time.monotonic()

    def rate(self) -> float | None:
        """Training images per second since the last call; None where there was no step."""
        rate = self._images / self._seconds if self._seconds > 0 else None
        self._images, self._seconds = 0, 0.0
        return rate

    def cost(self) -> timedelta | None:
        """Time of all steps of this process at that of the second one, right behind it; None at any other time.

        The first step is longer than all others, because PyTorch prepares its kernels in it.
        """
        return timedelta(seconds=round(self._last * self._remaining)) if self._done == TIMED else None

    def left(self) -> timedelta | None:
        """Time that the remaining steps take if they and what comes between them take as long as so far.

        None before the first step of this process, from which alone it can be known.
        """
        if not self._done:
            return None
        each = (time.monotonic() - self._began) / self._done
        return timedelta(seconds=round(each * (self._remaining - self._done)))

    def said(self, rate: float | None) -> str:
        """A rate and the time that is left, as the end of a sentence; what is not known is left out."""
        left = self.left()
        speed = "" if rate is None else f", {rate:.0f} images/s" if rate >= SLOW else f", {rate:.2g} images/s"
        return speed + ("" if left is None else f", {left} left")
