"""What a runner prints about some batches: read line by line, and handed on as records when a batch is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.records.batch import Batch
from autotailor.profiling.records.derivation import records_of
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
from autotailor.profiling.records.limits import refusal, refusal_of_blocks
from autotailor.profiling.records.machine_state import MachineState
from autotailor.profiling.records.record import Record
from autotailor.profiling.runtimes.base import Program


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
