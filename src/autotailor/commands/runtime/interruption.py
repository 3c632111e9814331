"""Signals that end a command: the first one ends the work in order, and further ones do not disturb the tidying up.

A closed terminal ends the command, too, unless it was started with ``nohup``.
"""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """While the context is open, the first signal raises KeyboardInterrupt, and further ones do nothing."""

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruption:
        for number in NUMBERS:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _interrupt(self, *_: int | FrameType | None) -> None:
        for number in NUMBERS:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt
