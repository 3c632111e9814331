"""Drives a pool through phases of load, one inference after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from autotailor.serving.demo.burden import Burdens
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
    found = [service.infer(Request(picture)).latency_ms for _ in range(2 * WARM)][WARM:]
    return float(np.median(found))


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
