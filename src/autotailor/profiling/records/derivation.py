"""From the events of a batch to its records: the cost of whatever is not the operator is subtracted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from autotailor.profiling.records.batch import Batch
from autotailor.profiling.records.differential import Walk, block_latencies, kernel_overhead, robust, step_latencies
from autotailor.profiling.records.events import Memory, ProgramTimed
from autotailor.profiling.records.limits import heap_difference
from autotailor.profiling.records.record import Record
from autotailor.profiling.runtimes.base import Program

SINK, HARNESS = "sink", "harness"
"""Keys of the helpers that show what a replica costs besides its operator, and what a call of the runtime costs."""

Blocks = npt.NDArray[np.float64]


def records_of(
    batch: Batch,
    helpers: Sequence[Program],
    timed: Mapping[str, ProgramTimed],
    weighed: Mapping[str, Memory],
    fingerprint: str,
    seconds: float,
) -> dict[str, list[Record]]:
    """The records of a batch.

    Args:
        batch: the batch; programs that were not timed have no records.
        helpers: the programs that are part of each batch, the anchor first; all of them were timed.
        timed: program key to what its runs have shown.
        weighed: operator id to the memory of an operator that is a step of a program.
        fingerprint: id of the device's fingerprint.
        seconds: how long the batch took; its programs share these seconds equally.

    Returns:
        Program key to the program's records: one, or one for each operator among its steps.
    """
    anchor = helpers[0]
    costs = {helper.key: robust(_blocks(helper, timed[helper.key]), 1).latency_ms for helper in helpers}
    besides = {p.key: costs[SINK] * p.sink if p.short else costs[HARNESS] for p in (anchor, *batch.programs)}
    anchor_ms = costs[anchor.key] - besides[anchor.key]
    programs = (anchor, *(p for p in batch.programs if p.key in timed and p.key != anchor.key))
    walks = {program.key: Walk.of(timed[program.key]) for program in programs if program.steps}
    overhead_ms = kernel_overhead(walks.values(), costs[HARNESS])
    records = {}
    for program in programs:
        event = timed[program.key]
        if program.steps:
            operators = step_latencies(program, walks[program.key], overhead_ms)
            held, copies = weighed, 1
        else:
            operators = {program.key: _blocks(program, event) - besides[program.key]}
            held, copies = {program.key: event.memory}, program.copies[1]
        share = seconds / len(programs) / len(operators)
        records[program.key] = [
            Record(
                fingerprint,
                key,
                tuple(map(float, blocks)),
                anchor_ms,
                event.passes,
                share,
                *_memory(held.get(key, Memory()), copies),
            )
            for key, blocks in operators.items()
        ]
    return records


def _memory(memory: Memory, copies: int) -> tuple[float | None, float | None]:
    """Weights of one copy and scratch memory, MiB; None for what the runner does not tell, or tells wrongly."""
    weights = None if memory.weights_mb is None else memory.weights_mb / copies
    return heap_difference(weights), heap_difference(memory.workspace_mb)


def _blocks(program: Program, event: ProgramTimed) -> Blocks:
    return block_latencies(program, event.short, event.long)
