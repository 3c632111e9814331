"""How long a runner may take for its work: far longer than any working runner, so that only a hung one is ended."""

from collections.abc import Mapping, Sequence
from typing import Any

from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.runner.loop import SETTLE_FACTOR

FACTOR = 10.0
"""A batch may take this many times as long as planned."""
LOAD_SECONDS = 2.0
"""Seconds to load and warm up one program on a slow board."""
SLOWEST_MACS_M = 50.0
"""Millions of multiply-accumulates that one core of a slow board computes in a second."""


def planned_seconds(
    programs: Sequence[Program], seconds: float, least_passes: int, settings: Mapping[str, Any]
) -> float:
    """Seconds that a batch takes at most where nothing hangs.

    Args:
        programs: all programs of the batch, helpers included.
        seconds: how long the programs are measured.
        least_passes: how many passes are made, however long they take.
        settings: the runner's settings: ``runs`` of each program in a pass, ``walks`` for each run, and ``settle_ms``,
            for which a network runs before the clock counts.
    """
    runs, walks = int(settings.get("runs", 1)), int(settings.get("walks", 0))
    settle = SETTLE_FACTOR * float(settings.get("settle_ms", 0.0)) / 1e3
    one_pass = sum(
        runs * (1 + walks) * program.macs_m / SLOWEST_MACS_M + (settle if program.short is None else 0.0)
        for program in programs
    )
    loading = LOAD_SECONDS * sum(1 + len(program.parts) for program in programs)
    return loading + max(seconds, least_passes * one_pass)


def allowed_seconds(planned: float, hang_minutes: float) -> float:
    """Seconds after which a runner is ended whose work should have taken ``planned`` seconds."""
    return max(FACTOR * planned, 60 * hang_minutes)
