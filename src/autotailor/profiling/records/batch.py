"""Programs that are measured together."""

from collections.abc import Sequence
from dataclasses import dataclass

from autotailor.profiling.runtimes.base import Program

LEAST_PASSES = 8
NETWORK_PASSES = 3
"""Least passes of a batch with whole networks: one run of a network takes as long as many runs of an operator."""
PORTION_SECONDS = 60.0
"""Seconds of measuring between two looks at the device's temperature."""


@dataclass(frozen=True)
class Batch:
    """Programs that are measured in turn for some seconds; the session adds its helpers (anchor, sink, harness).

    A pass runs each program several times: as often as ``runs`` of the runtime's settings says.

    Attributes:
        programs: what is measured.
        seconds: how long all programs are measured together.
        least_passes: how many passes are made, however long they take.
        attempt: how often the device has said nothing sensible of the programs before.
    """

    programs: tuple[Program, ...]
    seconds: float
    least_passes: int = LEAST_PASSES
    attempt: int = 0


def portions(batches: Sequence[Batch], seconds: float = PORTION_SECONDS) -> list[list[Batch]]:
    """Groups of consecutive batches; each group takes about ``seconds``, and holds one batch at least."""
    parts: list[list[Batch]] = []
    for batch in batches:
        if not parts or sum(b.seconds for b in parts[-1]) + batch.seconds > seconds:
            parts.append([])
        parts[-1].append(batch)
    return parts
