"""Signals that end training: the step at work is finished and kept first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Interruption:
    """The signal that came in, if any."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._before: dict[int, Any] = {}

    def listen(self) -> None:
        """From now on a signal is noted; the second one acts at once, as it did before."""
        if threading.current_thread() is threading.main_thread():  # others cannot receive signals
            self._before = {number: signal.signal(number, self._note) for number in SIGNALS}

    def restore(self) -> None:
        """Signals act again as they did before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def act(self) -> None:
        """Does what the noted signal is for.

        Raises:
            KeyboardInterrupt: it was Ctrl-C.
            SystemExit: it was SIGTERM.
        """
        if self.number == signal.SIGINT:
            raise KeyboardInterrupt
        if self.number is not None:
            raise SystemExit(128 + self.number)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        self.restore()


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Within this context signals that end the process are noted."""
    interruption = Interruption()
    interruption.listen()
    try:
        yield interruption
    finally:
        interruption.restore()
