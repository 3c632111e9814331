"""Drives a pool through phases of load, one inference after the other.

Burdens are processes that compete with the pool. A burden inherits the cores of the thread that starts it. It ends
after its seconds, with its parent (Linux: also when the parent is killed), and when the ``Burdens`` close.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from autotailor.serving.demo.trace import Sample
from autotailor.serving.errors import PoolError
from autotailor.serving.service import Service
from autotailor.serving.wire.bodies import Flag, Picture, Request

BURDENS = (0, 1, 3, 0)
WARM = 30
WAIT_S = 60.0
"""Seconds that a member may take to be loaded."""
ROOM = 1.5
"""The deadline of a demonstration, as a multiple of what the largest member takes before it begins."""

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


@dataclass(frozen=True)
class Phase:
    """So many burdens for so many seconds."""

    burdens: int
    seconds: float


def phases(seconds: float, burdens: Sequence[int] = BURDENS) -> tuple[Phase, ...]:
    """Phases of equal length that take so many seconds together.

    Raises:
        PoolError: the seconds are not positive.
    """
    if not 0 < seconds < float("inf") or not burdens:
        raise PoolError(f"a demonstration of {seconds} s with {len(burdens)} phases, expected some of both")
    return tuple(Phase(count, seconds / len(burdens)) for count in burdens)


def pictures_for(service: Service, count: int = 8, seed: int = 0) -> list[Picture]:
    """Noise ``[C, H, W]`` at the size of the largest input; an inference takes as long whatever the picture shows."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(service.largest_input).astype(np.float32) for _ in range(count)]


def unloaded_ms(service: Service, picture: Picture) -> float:
    """What the largest member takes here and now, in milliseconds: the median of some inferences.

    Raises:
        PoolError: the largest member cannot be loaded within ``WAIT_S``.
    """
    largest, end = len(service.names) - 1, time.monotonic() + WAIT_S
    service.set({"pin": service.names[largest]})
    while service.infer(Request(picture)).member != largest:
        if time.monotonic() > end:
            raise PoolError(f"{service.names[largest]} is not loaded within {WAIT_S:g} s: is there enough memory?")
    latencies = [service.infer(Request(picture)).latency_ms for _ in range(2 * WARM)][WARM:]
    return float(np.median(latencies))


def drive(
    service: Service, burdens: Burdens, plan: Sequence[Phase], pictures: Sequence[Picture], rate: float = 0.0
) -> Iterator[Sample]:
    """Runs inferences through the phases, and yields each one.

    Args:
        service: a running pool.
        burdens: that are started and ended.
        plan: the phases.
        pictures: used in turn.
        rate: inferences a second; 0 runs one after the other without a pause.
    """
    deadline_ms = float(service.status()["settings"]["deadline_ms"])
    begun = time.perf_counter()
    ends = list(accumulate(phase.seconds for phase in plan))
    number = 0
    for phase, planned in zip(plan, ends, strict=True):
        burdens.set(phase.burdens)
        end = max(planned, time.perf_counter() - begun + phase.seconds / 2)  # however long the phase before stalled
        while (now := time.perf_counter() - begun) < end:
            if rate and (ahead := number / rate - now) > 0:
                time.sleep(min(ahead, end - now))
                if number / rate >= end:
                    break
            yield _sample(
                service, deadline_ms, pictures[number % len(pictures)], time.perf_counter() - begun, phase.burdens
            )
            number += 1
    burdens.set(0)


def _sample(service: Service, deadline_ms: float, picture: Picture, seconds: float, burdens: int) -> Sample:
    reply = service.infer(Request(picture))
    slowdown, waiting = service.load()
    return Sample(
        seconds=seconds,
        burdens=burdens,
        member=service.names[reply.member],
        accuracy=service.accuracies[reply.member],
        latency_ms=reply.latency_ms,
        cpu_ms=reply.cpu_ms,
        deadline_ms=deadline_ms,
        switched=Flag.SWITCHED in reply.flags,
        nothing_fits=Flag.NOTHING_FITS in reply.flags,
        slowdown=slowdown,
        waiting=waiting,
    )


class Burdens:
    """A number of running burdens, which can be changed; a context manager that ends them all."""

    def __init__(self, seconds: float, kind: str = KINDS[0]) -> None:
        """Starts no burden.

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
