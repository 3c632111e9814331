"""Wall and CPU time of what one thread runs, with the threads that it has work for it."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass

MILLION = 1e6
READINGS = 3


@dataclass
class Stopwatch:
    """Times of a block of code, in milliseconds; a context manager.

    CPU time of one thread is that of the calling thread. Of several threads, it is the time of the process without
    that of another thread (``aside``), divided by their number.

    Attributes:
        threads: that compute, with the calling one.
        aside: a Python thread whose CPU time is not to count; None without one.
        wall_ms: wall time of the block.
        cpu_ms: CPU time of the block.
    """

    threads: int = 1
    aside: threading.Thread | None = None
    wall_ms: float = 0.0
    cpu_ms: float = 0.0

    def __enter__(self) -> Stopwatch:
        self._cpu, self._wall = self._used(), time.perf_counter_ns()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall_ms = (time.perf_counter_ns() - self._wall) / MILLION
        # Both clocks tick in steps; a time of zero would be no time.
        self.cpu_ms = max((self._used() - self._cpu) / MILLION, 1e-6)
        self.wall_ms = max(self.wall_ms, 1e-6)

    def _used(self) -> float:
        """CPU nanoseconds so far, for each of the threads."""
        if self.threads == 1:
            return time.thread_time_ns()
        return _process_ns_without(self.aside) / self.threads


def _process_ns_without(thread: threading.Thread | None) -> int:
    """CPU time of the process without that of a thread.

    Both clocks are read one after the other, and Python may let the thread work for 5 ms between the two readings.
    The thread's clock is therefore read on both sides of the process's: of several readings, the one counts during
    which the thread worked least.
    """
    readings = [(_cpu_ns(thread), time.process_time_ns(), _cpu_ns(thread)) for _ in range(READINGS)]
    before, process, after = min(readings, key=lambda reading: abs(reading[2] - reading[0]))
    return process - (before + after) // 2


def _cpu_ns(thread: threading.Thread | None) -> int:
    """CPU time of another thread; 0 where it does not run."""
    with suppress(OSError, TypeError, AttributeError):  # it has ended, or has not begun
        if thread is not None and thread.ident is not None and thread.is_alive():
            return time.clock_gettime_ns(time.pthread_getcpuclockid(thread.ident))
    return 0
