"""Burdens: processes that compete with the pool. Each one ends by itself, whatever becomes of the process that asked.

A burden inherits the cores of the thread that starts it. It ends after its seconds, with its parent (Linux: also when
the parent is killed), and when the ``Burdens`` close.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from autotailor.serving.errors import PoolError

KINDS = ("compute", "memory")
MOST = 16
"""Burdens at once."""
PROGRAM = """
import os, sys, time
parent, end, kind = int(sys.argv[1]), time.monotonic() + float(sys.argv[2]), sys.argv[3]
try:
    import ctypes, signal
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
except (OSError, AttributeError):
    pass
size = 48 << 20
source, target = (bytearray(size), bytearray(size)) if kind == "memory" else (b"", b"")
while time.monotonic() < end and os.getppid() == parent:
    if kind == "memory":
        target[:] = source
    else:
        for _ in range(20000):
            pass
"""
"""What a burden runs: a loop that fits into the first cache, or copies that fit into none."""


class Burdens:
    """A number of running burdens, which can be changed; a context manager that ends them all."""

    def __init__(self, seconds: float, kind: str = KINDS[0]) -> None:
        """Starts none.

        Args:
            seconds: after which each burden ends by itself.
            kind: ``compute`` or ``memory``.

        Raises:
            PoolError: the kind is unknown.
        """
        if kind not in KINDS:
            raise PoolError(f"a burden of kind {kind!r} is unknown; there are {', '.join(KINDS)}")
        self._seconds, self._kind = seconds, kind
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Burdens:
        return self

    def __exit__(self, *_: object) -> None:
        self.set(0)

    @property
    def processes(self) -> list[int]:
        """Numbers of the processes that were started and not ended."""
        return [process.pid for process in self._running]

    def set(self, count: int) -> None:
        """Starts or ends burdens until ``count`` of them run.

        Raises:
            PoolError: there would be too many.
        """
        if not 0 <= count <= MOST:
            raise PoolError(f"{count} burdens, expected 0 to {MOST}")
        while len(self._running) > count:
            process = self._running.pop()
            process.kill()
            process.wait()
        while len(self._running) < count:
            command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(os.getpid()), str(self._seconds), self._kind]
            self._running.append(
                # A group of its own: Ctrl-C reaches the process that asked alone, which ends its burdens.
                subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, process_group=0)
            )


@contextmanager
def pinned_to_one_core() -> Iterator[int | None]:
    """Keeps the calling thread, and what it starts, on one core; yields the core, or None where this cannot be done."""
    if not hasattr(os, "sched_setaffinity"):
        yield None
        return
    before = os.sched_getaffinity(0)
    core = max(before)
    os.sched_setaffinity(0, {core})
    try:
        yield core
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, before)
