"""How long a device may take for what its runner is asked: far longer than any does, so that only a hung one does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autotailor.profiling.runtimes.base import Program

FACTOR = 10.0
"""A batch may take so many times what its plan says."""
LOAD_SECONDS = 2.0
"""To load and warm up one program, on a slow board."""
SLOWEST_MACS_M = 50.0
"""Millions of multiply-accumulates that a slow board's core does in a second."""


def planned_seconds(
    programs: Sequence[Program], seconds: float, least_passes: int, settings: Mapping[str, Any]
) -> float:
    """What a batch takes at most where nothing hangs.

    Args:
        programs: all that it measures, helpers included.
        seconds: of measuring.
        least_passes: that it makes however long they take.
        settings: of the runner: ``runs`` of each program in a pass, ``walks`` for each of those, and how long a network
            runs before the clock counts (``settle_ms``).
    """
    runs, walks = int(settings.get("runs", 1)), int(settings.get("walks", 0))
    settle = float(settings.get("settle_ms", 0.0)) / 1e3
    one_pass = sum(
        runs * (1 + walks) * program.macs_m / SLOWEST_MACS_M + (settle if program.short is None else 0.0)
        for program in programs
    )
    loading = LOAD_SECONDS * sum(1 + len(program.parts) for program in programs)
    return loading + max(seconds, least_passes * one_pass)


def allowed_seconds(planned: float, hang_minutes: float) -> float:
    """After how long a runner is ended that should have shown an end after ``planned`` seconds."""
    return max(FACTOR * planned, 60 * hang_minutes)
