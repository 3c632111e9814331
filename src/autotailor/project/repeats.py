"""Tells signals of one cause from a second wish: a signal may reach a process twice at once, on two ways.

``timeout`` and some batch systems signal all processes of a run, and Snakemake hands the signal on to its rules as well
(``termination``). A person who wants an end at once signals again later.
"""

import signal
import time
from types import FrameType

TOGETHER_S = 2.0
"""Seconds within which signals have one cause."""


class Repeats:
    """Remembers when signals came; the first one of a cause counts."""

    def __init__(self) -> None:
        self._last: dict[int, float] = {}

    def count(self, number: int) -> bool:
        """Notes that a signal came, and says whether it counts; one that repeats the last one does not."""
        now = time.monotonic()
        last = self._last.get(number)
        self._last[number] = now
        return last is None or now - last >= TOGETHER_S


def interrupt_once() -> None:
    """From now on SIGINT raises KeyboardInterrupt once for each cause, so that the tidying up is not disturbed.

    Where SIGINT is ignored or handled otherwise, nothing changes.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    repeats = Repeats()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if repeats.count(number):
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
