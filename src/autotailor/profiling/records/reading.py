"""From the runner's lines to records: those of a batch are handed on as soon as it is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.records.batch import Batch
from autotailor.profiling.records.differential import Walk, block_latencies, kernel_overhead, robust, step_latencies
from autotailor.profiling.records.limits import heap_difference, refusal, refusal_of_blocks
from autotailor.profiling.records.machine_state import MachineState
from autotailor.profiling.records.record import Record
from autotailor.profiling.records.runner_lines import (
    Lines,
    StrangeLineError,
    by_key,
    check_batch,
    check_end,
    check_memory,
    check_program,
    parse,
    reason_of,
)
from autotailor.profiling.runtimes.base import Program

SINK, HARNESS = "sink", "harness"


class Reading:
    """What a runner prints about some batches, taken in line by line.

    Args:
        device: its name, for messages.
        fingerprint: id of the device's fingerprint.
        helpers: programs that are part of each batch, the anchor first.
        batches: what the runner was asked.
        on_records: takes the records of a batch that is done.

    Attributes:
        lines: what was said so far.
        states: how fast and warm the device was, before and after each batch.
        first: the batch that the runner calls 0.
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
        self.lines = Lines()
        self.states: list[MachineState] = []
        self.first = 0
        self.on_end: Callable[[], None] = lambda: None
        self._device, self._fingerprint = device, fingerprint
        self._helpers, self._batches, self._on_records = helpers, batches, on_records
        self._known: dict[int, tuple[dict[str, Program], set[str]]] = {}

    def take(self, text: str) -> None:
        """Takes in a line of whatever kind; raises only what ``on_records`` does, and ProfilingError for helpers."""
        try:
            if line := parse(text):
                self._take(line)
        except StrangeLineError as error:
            self.lines.note(text, error)

    def _take(self, line: Mapping[str, Any]) -> None:
        """Takes one line of the runner in; those of finished batches, which a journal repeats, are known."""
        if line["event"] not in ("program", "weighed", "failed", "batch"):
            return
        check_batch(line, len(self._batches) - self.first)
        index = self.first + line.get("batch", 0)
        if index < self.lines.finished:
            return
        if line["event"] == "batch":
            check_end(line)
            self.end_before(index, "its batch has no line about its end")
            self._finish(index, line)
        else:
            self._take_part(index, line)

    def _take_part(self, index: int, line: Mapping[str, Any]) -> None:
        """Takes in what a line says of one program of a batch."""
        if index not in self._known:
            programs = by_key((*self._helpers, *self._batches[index].programs))
            self._known = {index: (programs, {key for p in programs.values() for key, _ in p.steps} | programs.keys())}
        key, (programs, keys) = line.get("key"), self._known[index]
        if not isinstance(key, str) or key not in keys:
            raise StrangeLineError("of nothing that was asked for")
        match line["event"]:
            case "program" if key in programs:
                check_program(line, programs[key])
                self.lines.programs.setdefault(index, {})[key] = line
            case "weighed":
                check_memory(line)
                self.lines.weighed[key] = line
            case "failed":
                self.lines.failures[key] = reason_of(line)

    def end_before(self, index: int, reason: str) -> None:
        """Notes that the batches before this one have ended without a line that says so."""
        for lost in range(self.lines.finished, index):
            self.lines.again[lost] = (self._batches[lost].programs, reason)
            self.lines.programs.pop(lost, None)
            self.lines.finished += 1

    def _finish(self, index: int, line: Mapping[str, Any]) -> None:
        """Hands on the records of a batch; notes the programs that nothing sensible was said of."""
        batch, found = self._batches[index], self.lines.programs.pop(index, {})
        if broken := sorted(p.key for p in self._helpers if p.key in self.lines.failures):
            raise ProfilingError(f"device {self._device}: the runtime cannot measure {', '.join(broken)}")
        if missing := sorted(p.key for p in self._helpers if p.key not in found):
            self.lines.again[index] = (batch.programs, f"no sensible line about {', '.join(missing)}")
        else:
            lost = tuple(p for p in batch.programs if p.key not in found and p.key not in self.lines.failures)
            self._hand_on(index, self._records(batch, found, line["seconds"]), lost)
        self.lines.finished = index + 1
        self.states += [MachineState.from_line(line[when]) for when in ("before", "after") if when in line]
        self.on_end()

    def _hand_on(self, index: int, records: Mapping[str, list[Record]], lost: tuple[Program, ...]) -> None:
        """Hands on what makes sense; ``lost``: programs that there is no record of."""
        batch = self._batches[index]
        refused = {key: wrong for key, of in records.items() for record in of if (wrong := _refusal(record))}
        if self._helpers[0].key in refused:
            lost, refused = batch.programs, dict.fromkeys(records, refused[self._helpers[0].key])
        again = (*lost, *(p for p in batch.programs if p.key in refused and p not in lost))
        if again or refused:
            self.lines.again[index] = (again, next(iter(refused.values()), "no sensible line about it"))
        if sound := [record for key, of in records.items() if key not in refused for record in of]:
            self._on_records(sound)

    def _records(self, batch: Batch, found: Mapping[str, Mapping[str, Any]], seconds: float) -> dict[str, list[Record]]:
        """Program key to its records: what replicas, calls and timing cost besides is taken off."""
        anchor, weighed = self._helpers[0], self.lines.weighed
        helpers = {program.key: program for program in self._helpers}
        costs = {key: robust(_blocks(program, found[key]), 1).latency_ms for key, program in helpers.items()}
        besides = {p.key: costs[SINK] * p.sink if p.short else costs[HARNESS] for p in (anchor, *batch.programs)}
        anchor_ms = costs[anchor.key] - besides[anchor.key]
        programs = (anchor, *(p for p in batch.programs if p.key in found and p.key != anchor.key))
        walks = {program.key: Walk.from_line(found[program.key]) for program in programs if program.steps}
        overhead = kernel_overhead(walks.values(), costs[HARNESS])
        share = seconds / max(1, len(programs))
        records: dict[str, list[Record]] = {}
        for program in programs:
            line = found[program.key]
            if program.steps:
                operators = step_latencies(program, walks[program.key], overhead)
                known = {key: weighed.get(key, {}) for key in operators}
                copies = 1
            else:
                operators = {program.key: _blocks(program, line) - besides[program.key]}
                known = {program.key: line}
                copies = program.copies[1]
            for key, blocks in operators.items():
                values, passes = tuple(float(v) for v in blocks), int(line["passes"])
                record = Record(self._fingerprint, key, values, anchor_ms, passes, share / len(operators))
                records.setdefault(program.key, []).append(_with_memory(record, copies, known[key]))
        return records


def _refusal(record: Record) -> str | None:
    """Why a record makes no sense; None: it does."""
    return refusal(vars(record)) or refusal_of_blocks(record.blocks)


def _with_memory(record: Record, copies: int, line: Mapping[str, Any]) -> Record:
    """The record with weights of one copy and scratch memory, MiB, where the runner says them."""
    if "weights_mb" in line:
        record = replace(record, resident_weight_mb=heap_difference(line["weights_mb"] / copies))
    if "workspace_mb" in line:
        record = replace(record, workspace_mb=heap_difference(line["workspace_mb"]))
    return record


def _blocks(program: Program, line: Mapping[str, Any]) -> Any:
    return block_latencies(program, line.get("short", ()), line["long"])
