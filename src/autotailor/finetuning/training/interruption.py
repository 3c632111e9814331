"""Signals that end training: training first finishes the current step and writes a checkpoint."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from autotailor.project.repeats import Repeats

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Interruption:
    """Notes the first signal that arrives (``number``), so that the loop can act on it later."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._before: dict[int, Any] = {}
        self._has_heard, self._repeats = False, Repeats()

    def listen(self) -> None:
        """From now on the first signal is only noted; a second signal acts at once, unless it repeats the first one."""
        if threading.current_thread() is threading.main_thread():  # other threads cannot receive signals
            self._before = {number: signal.signal(number, self._note) for number in SIGNALS}

    def arrived(self) -> int:
        """The signal that was noted; 0 for none."""
        return self.number or 0

    def restore(self) -> None:
        """Restores the handlers that were set before ``listen``."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def act(self) -> None:
        """Ends the process if a signal was noted, here or in a process that trains together with this one.

        Raises:
            KeyboardInterrupt: the signal was SIGINT (Ctrl-C).
            SystemExit: the signal was SIGTERM.
        """
        if self.number == signal.SIGINT:
            raise KeyboardInterrupt
        if self.number is not None:
            raise SystemExit(128 + self.number)

    def _note(self, number: int, frame: FrameType | None) -> None:
        is_wish = self._repeats.count(number)
        if not self._has_heard:  # the number may be that of a signal to another process
            self._has_heard, self.number = True, number
        elif is_wish:
            self.restore()
            signal.raise_signal(number)


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Inside this context, signals that would end the process are noted."""
    interruption = Interruption()
    interruption.listen()
    try:
        yield interruption
    finally:
        interruption.restore()
