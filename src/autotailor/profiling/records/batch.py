"""Programs that are measured together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autotailor.profiling.runtimes.base import Program

LEAST_PASSES = 8
PORTION_SECONDS = 60.0
"""Of measuring, between two looks at the device's temperature."""


@dataclass(frozen=True)
class Batch:
    """Programs that are measured in turn for some seconds; the anchor and the sink are added to them.

    A pass has several runs of each program, `runs` of the runtime's settings.

    Attributes:
        programs: them.
        seconds: of measuring, for all of them.
        least_passes: that are made however long they take.
        attempt: how often what the device said of them made no sense.
    """

    programs: tuple[Program, ...]
    seconds: float
    least_passes: int = LEAST_PASSES
    attempt: int = 0


def portions(batches: Sequence[Batch], seconds: float = PORTION_SECONDS) -> list[list[Batch]]:
    """Consecutive batches, so many that they take about ``seconds`` together; at least one."""
    parts: list[list[Batch]] = []
    for batch in batches:
        if not parts or sum(b.seconds for b in parts[-1]) + batch.seconds > seconds:
            parts.append([])
        parts[-1].append(batch)
    return parts
