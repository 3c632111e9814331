"""What a runner prints about some batches: read line by line, and handed on as records when a batch is done."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.records.batch import Batch
from autotailor.profiling.records.differential import Walk, block_latencies, kernel_overhead, robust, step_latencies
from autotailor.profiling.records.events import (
    Asked,
    BatchDone,
    Memory,
    PeakMemory,
    ProgramFailed,
    ProgramTimed,
    ProgramWeighed,
    StrangeLineError,
)
from autotailor.profiling.records.limits import heap_difference, refusal, refusal_of_blocks
from autotailor.profiling.records.machine_state import MachineState
from autotailor.profiling.records.record import Record
from autotailor.profiling.runtimes.base import Program

SINK, HARNESS = "sink", "harness"
"""Keys of the helpers that show what a replica costs besides its operator, and what a call of the runtime costs."""

Blocks = npt.NDArray[np.float64]


class Reading:
    """What a runner has said so far of some batches.

    A line that makes no sense, and a program that no sensible line is about, are the device's fault. Both are noted, so
    that the programs are measured again.

    Args:
        device: the device's name, for messages.
        fingerprint: id of the device's fingerprint.
        helpers: programs that are part of each batch, the anchor first.
        batches: what the runner was asked to measure.
        on_records: takes the records of a batch that is done.

    Attributes:
        finished: how many batches are done.
        failures: program key to the reason why the runtime cannot run the program.
        strange: how many lines made no sense.
        first_strange: the first of these lines, with the reason; empty where there is none.
        again: number of a batch to its programs that nothing sensible was said of, with the reason; no program: the
            anchor or another helper is concerned.
        states: how fast and warm the device was, before and after each batch.
        on_end: called after each batch that is done.
    """

    def __init__(
        self,
        device: str,
        fingerprint: str,
        helpers: Sequence[Program],
        batches: Sequence[Batch],
        on_records: Callable[[list[Record]], None],
    ) -> None:
        self.finished = 0
        self.failures: dict[str, str] = {}
        self.strange = 0
        self.first_strange = ""
        self.again: dict[int, tuple[tuple[Program, ...], str]] = {}
        self.states: list[MachineState] = []
        self.on_end: Callable[[], None] = lambda: None
        self._device, self._fingerprint = device, fingerprint
        self._helpers, self._batches, self._on_records = helpers, batches, on_records
        self._timed: dict[int, dict[str, ProgramTimed]] = {}
        self._weighed: dict[str, Memory] = {}
        self._first = 0
        self._asked = Asked(batches, helpers)

    def restart(self) -> Sequence[Batch]:
        """The batches that are not done: the runner is started again with these alone, and counts them from 0."""
        self._first = self.finished
        left = self._batches[self._first :]
        self._asked = Asked(left, self._helpers)
        return left

    def take(self, text: str) -> None:
        """Takes in a line of whatever kind.

        Raises:
            ProfilingError: the runtime cannot run a program that is part of every batch.
            Exception: what ``on_records`` or ``on_end`` raises.
        """
        try:
            event = self._asked.event(text)
        except StrangeLineError as error:
            self.strange += 1
            self.first_strange = self.first_strange or f"{error}: {text[:100]!r}"
            return
        if event is None or isinstance(event, PeakMemory):
            return
        index = self._first + event.batch
        if index < self.finished:  # a runner that was started again repeats its journal
            return
        match event:
            case ProgramTimed():
                self._timed.setdefault(index, {})[event.key] = event
            case ProgramWeighed():
                self._weighed[event.key] = event.memory
            case ProgramFailed():
                self.failures[event.key] = event.reason
            case BatchDone():
                self.end_before(index, "its batch has no line about its end")
                self._finish(index, event)

    def end_before(self, index: int, reason: str) -> None:
        """Notes that the batches before this one have ended without a line that says so."""
        for lost in range(self.finished, index):
            self.again[lost] = (self._batches[lost].programs, reason)
            self._timed.pop(lost, None)
            self.finished += 1

    def _finish(self, index: int, event: BatchDone) -> None:
        """Hands on the records of a batch; notes the programs that nothing sensible was said of."""
        batch, timed = self._batches[index], self._timed.pop(index, {})
        if broken := sorted(p.key for p in self._helpers if p.key in self.failures):
            raise ProfilingError(f"device {self._device}: the runtime cannot measure {', '.join(broken)}")
        if missing := sorted(p.key for p in self._helpers if p.key not in timed):
            self.again[index] = (batch.programs, f"no sensible line about {', '.join(missing)}")
        else:
            records = records_of(batch, self._helpers, timed, self._weighed, self._fingerprint, event.seconds)
            lost = tuple(p for p in batch.programs if p.key not in timed and p.key not in self.failures)
            self._hand_on(index, records, lost)
        self.finished = index + 1
        self.states += event.states
        self.on_end()

    def _hand_on(self, index: int, records: Mapping[str, list[Record]], lost: tuple[Program, ...]) -> None:
        """Hands on the records that make sense; ``lost`` are the programs without a record."""
        batch = self._batches[index]
        refused = {key: wrong for key, of in records.items() for record in of if (wrong := _refusal(record))}
        if self._helpers[0].key in refused:
            lost, refused = batch.programs, dict.fromkeys(records, refused[self._helpers[0].key])
        again = (*lost, *(p for p in batch.programs if p.key in refused and p not in lost))
        if again or refused:
            self.again[index] = (again, next(iter(refused.values()), "no sensible line about it"))
        if sound := [record for key, of in records.items() if key not in refused for record in of]:
            self._on_records(sound)


def _refusal(record: Record) -> str | None:
    """Why a record makes no sense; None where it does."""
    return refusal(vars(record)) or refusal_of_blocks(record.blocks)


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
