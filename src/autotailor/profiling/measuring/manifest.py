"""The manifest that tells a runner what to measure, before the runtime writes it as its runner reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autotailor.profiling.records.batch import Batch
from autotailor.profiling.runtimes.base import Program

BLOCKS = 8
"""Blocks of passes that the runner averages: a record has one latency for each block."""
ANCHOR_SHARE = 0.1
"""Least share of a pass that the anchor runs for, so that its mean shows the speed of the whole pass."""


def manifest_of(batches: Sequence[Batch], helpers: Sequence[Program], settings: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest that asks for the latencies of programs.

    Args:
        batches: what is measured.
        helpers: programs that are added to each batch, the anchor first; none: nothing runs between the others.
        settings: the runner's settings.
    """
    return {
        "settings": dict(settings),
        "batches": [
            {
                "seconds": batch.seconds,
                "least_passes": batch.least_passes,
                "blocks": BLOCKS,
                "anchor_share": ANCHOR_SHARE if helpers else 0.0,
                "programs": [program.to_manifest() for program in (*helpers, *batch.programs)],
            }
            for batch in batches
        ],
    }


def memory_manifest(program: Program, settings: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest that asks for the peak memory of one program."""
    return {"settings": dict(settings), "memory": program.to_manifest(), "batches": []}
