"""What a runner is asked to measure, and what is left when it has ended: after a crash, a hang, or senseless lines."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.records.batch import Batch
from autotailor.profiling.records.reading import Reading
from autotailor.profiling.runtimes.base import Program

logger = logging.getLogger(__name__)

STRANGE_VISITS = 3
"""How often a device may say nothing sensible of a program before the program counts as failed."""

BLOCKS = 8
"""Blocks of passes that the runner averages: a record has one latency for each block."""
ANCHOR_SHARE = 0.1
"""Least share of a pass that the anchor runs for, so that its mean shows the speed of the whole pass."""


@dataclass(frozen=True)
class RunnerEnd:
    """How a runner has ended.

    Attributes:
        code: its exit code; below 0 where a signal ended it.
        why: what to say of a program that the runner ended over.
        error: what the runner printed on its error stream.
    """

    code: int
    why: str
    error: str


def remaining(
    device: str, batches: Sequence[Batch], reading: Reading, end: RunnerEnd, failures: dict[str, str]
) -> list[Batch]:
    """The batches that are still to be measured; adds the programs that are given up to the failures.

    Args:
        device: the device's name, for messages.
        batches: what the runner was asked to measure.
        reading: what the runner said.
        end: how the runner has ended.
        failures: program key to the reason why the program cannot be measured.

    Raises:
        ProfilingError: the runner ended early by itself; or it ended over what is part of every batch, or never says
            anything sensible of that.
    """
    return _not_finished(device, batches, reading, end, failures) + _not_understood(device, batches, reading, failures)


def _not_finished(
    device: str, batches: Sequence[Batch], reading: Reading, end: RunnerEnd, failures: dict[str, str]
) -> list[Batch]:
    """The batches that the runner has not finished: each program of the one that ended it becomes a batch."""
    if reading.finished == len(batches):
        return []
    if end.code > 0:
        raise ProfilingError(
            f"device {device}: the runner ended with exit code {end.code} before its work was done: "
            f"{end.error or 'it said nothing'}"
        )
    if end.code == 0:
        reading.end_before(len(batches), f"the runner ended, and said no more ({end.error})")
        return []
    batch, *rest = batches[reading.finished :]
    if not batch.programs:
        raise ProfilingError(f"device {device}: {end.why} with nothing but the anchor operator to run")
    if len(batch.programs) == 1:
        failures[batch.programs[0].key] = end.why
        return rest
    each = batch.seconds / len(batch.programs)
    return [replace(batch, programs=(program,), seconds=each) for program in batch.programs] + rest


def _not_understood(device: str, batches: Sequence[Batch], reading: Reading, failures: dict[str, str]) -> list[Batch]:
    """What the device has said nothing sensible of, as batches; after the last attempt, failures."""
    again = []
    for index, (programs, reason) in sorted(reading.again.items()):
        batch, attempt = batches[index], batches[index].attempt + 1
        if attempt < STRANGE_VISITS:
            share = len(programs) / max(1, len(batch.programs)) if programs else 1.0
            again.append(replace(batch, programs=programs, seconds=batch.seconds * share, attempt=attempt))
            continue
        if not programs:
            raise ProfilingError(f"device {device}: the runner makes no sense {attempt} times: {reason}")
        failures |= {program.key: f"what the device says of it makes no sense: {reason}" for program in programs}
    if reading.strange or again:
        logger.warning(
            "device %s: %d lines of its runner make no sense (%s); %d programs are measured again, and "
            "where this goes on, check its cable and its storage",
            device,
            reading.strange,
            reading.first_strange or next(iter(reading.again.values()))[1],
            sum(len(batch.programs) for batch in again),
        )
    return again


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
