"""A session on a device: programs go out in batches, records of measurements come back."""

from __future__ import annotations

import json
import logging
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from tenacity import retry, retry_if_exception_type, stop_after_attempt

from autotailor.profiling.device import DeviceConfig, Fingerprint, fingerprint
from autotailor.profiling.differential import Walk, block_latencies, kernel_overhead, robust, step_latencies
from autotailor.profiling.errors import ProfilingError, RunLostError
from autotailor.profiling.limits import heap_difference
from autotailor.profiling.lock import DeviceLock
from autotailor.profiling.machine_state import MachineState, change
from autotailor.profiling.record import Record
from autotailor.profiling.runtimes import Runtime, open_runtime
from autotailor.profiling.runtimes.base import Program, journal_of
from autotailor.profiling.transports import Transport, open_transport
from autotailor.profiling.unfinished import Unfinished, note_path, read_note, write_note

logger = logging.getLogger(__name__)

BLOCKS = 8
LOST_RUNS = 3
"""Runs of the runner in a row that may be lost before anything is finished."""
MANIFEST = "manifest.json"
LEAST_PASSES = 8
NETWORK_PASSES = 3
"""Least passes of whole networks: a run of those is as long as many of an operator."""
ANCHOR_SHARE = 0.1
"""Share of a pass that the anchor is brought up to: the speed that it shows is that of all that ran beside it."""
SINK, HARNESS = "sink", "harness"
TURN_SECONDS = (5.0, 15.0)
"""Least and most seconds until a device is claimed again that another run uses."""
REMIND_SECONDS = 60.0
"""Between two messages while waiting for it."""


@dataclass(frozen=True)
class Batch:
    """Programs that are measured in turn for some seconds; the anchor and the sink are added to them.

    A pass has several runs of each program, `runs` of the runtime's settings.
    """

    programs: tuple[Program, ...]
    seconds: float
    least_passes: int = LEAST_PASSES


@dataclass
class Lines:
    """What the runner has printed so far, by batch."""

    programs: dict[int, dict[str, Mapping[str, Any]]] = field(default_factory=dict)
    weighed: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    finished: int = 0


class Session:
    """Holds the device (one session at a time), its transport and its runtime; use it in a ``with``.

    Args:
        device: its configuration.
        notes: a folder for what a later session must know to read what this one has not; None: nothing is noted.
    """

    def __init__(self, device: DeviceConfig, notes: Path | None = None) -> None:
        self.device = device
        self.transport: Transport = open_transport(device)
        self.runtime: Runtime = open_runtime(device)
        self.fingerprint: Fingerprint
        self.anchor = self.runtime.replicas(self.runtime.anchor())
        self._helpers = (self.anchor, self.runtime.sink(), self.runtime.harness())
        self._lock = DeviceLock(self.transport.identity, device.name)
        self._networks: dict[Path, str] = {}
        self._states: list[MachineState] = []
        self._notes = notes if self.runtime.resumes else None
        self._note: Path | None = None
        self._noted = 0

    def __enter__(self) -> Session:
        self._lock.acquire()
        try:
            self.runtime.check()
            self.transport.check()
            self._wait_for_turn()
            hardware = self.transport.probe()
            self.runtime.prepare(self.transport, hardware)
            self.fingerprint = fingerprint(self.device, hardware, self.runtime.facts(), self.anchor.key)
            if self._notes:
                self._note = note_path(self._notes, self.transport.identity, self.fingerprint.id)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.transport.cleanup()
        finally:
            self._lock.release()
        if self._states:
            logger.info("device %s: %s", self.device.name, change(self._states))

    def _wait_for_turn(self) -> None:
        """Until no other run works on the device: one through another address, or of another computer."""
        told = -REMIND_SECONDS
        while user := self.transport.claim():
            if time.monotonic() - told >= REMIND_SECONDS:
                logger.warning("device %s is in use by %s: waiting until it is free", self.device.name, user)
                told = time.monotonic()
            time.sleep(random.uniform(*TURN_SECONDS))

    def network(self, key: str, directory: Path, inputs: Sequence[tuple[int, ...]]) -> Program:
        """A converted network, its files on the device: they go there once in a session.

        Args:
            key: for its result.
            directory: its files here.
            inputs: shapes without the batch.
        """
        if directory not in self._networks:
            name = f"networks/{len(self._networks) + 1}"
            self._networks[directory] = self.transport.share(directory, self.runtime.files, name)
        return self.runtime.network(key, directory, inputs, self._networks[directory])

    def take_left(self, keep: Callable[[list[Record]], None]) -> None:
        """Hands on what an earlier session with the same notes and fingerprint has started, then forgets it.

        Args:
            keep: stores the records, those that the earlier session has read among them.
        """
        left = read_note(self._note) if self._note else None
        if left is None or self._note is None:
            return
        records: list[Record] = []
        lines = Lines()
        batches = [Batch(programs, 0.0) for programs in left.batches]
        try:
            for text in self.transport.rescue(left.journal).splitlines():
                self._read(text, 0, batches, lines, records.extend)
        except (ProfilingError, LookupError) as error:
            logger.warning("device %s: an earlier run's journal is not whole (%s)", self.device.name, error)
        keep(records)
        self.transport.forget(left.journal)
        self._note.unlink(missing_ok=True)

    def measure(self, batches: Sequence[Batch], on_records: Callable[[list[Record]], None]) -> dict[str, str]:
        """Measures batches; hands on the records of each as soon as it is done.

        A crash of the runner costs one batch: its programs are tried again one by one, the rest goes on. A runner that
        was lost with its device is started again, and goes on where it was.

        Returns:
            Program key to the reason why it cannot be measured.
        """
        failures: dict[str, str] = {}
        waiting = list(batches)
        while waiting:
            lines = Lines()
            code = self._run(waiting, lines, on_records)
            failures.update(lines.failures)
            unfinished = waiting[lines.finished :]
            if not unfinished:
                break
            if code >= 0:
                raise ProfilingError(
                    f"device {self.device.name}: the runner ended with exit code {code} before its work was done: "
                    f"{self.transport.last_error or 'it said nothing'}"
                )
            batch, waiting = unfinished[0], unfinished[1:]
            if len(batch.programs) > 1:
                each = batch.seconds / len(batch.programs)
                waiting = [replace(batch, programs=(p,), seconds=each) for p in batch.programs] + waiting
            else:
                failures[batch.programs[0].key] = f"the runtime crashed (signal {-code})"
        return failures

    def _run(self, batches: Sequence[Batch], lines: Lines, on_records: Callable[[list[Record]], None]) -> int:
        """The runner over all batches, started again where it is lost: its exit code."""
        first, path, lost = 0, self._push_manifest(batches), 0
        while True:
            before = lines.finished
            on_line = partial(self._read, first=first, batches=batches, lines=lines, on_records=on_records)
            try:
                code = self.transport.run(self.runtime.runner(path), on_line)
                self._all_was_read(path)
                return code
            except RunLostError as error:
                lost = 1 if lines.finished > before else lost + 1
                if lost >= LOST_RUNS:
                    raise
                logger.warning("%s; going on with what is left", error)
            if not self.runtime.resumes:
                first, path = lines.finished, self._push_manifest(batches[lines.finished :])

    def _push_manifest(self, batches: Sequence[Batch]) -> str:
        """The manifest of some batches on the device: its path there."""
        if self._note is None:
            return self.send(batches, self._helpers, self.runtime.settings())
        # No manifest has the name, and so the journal, of one before: a note is never read with another's journal.
        name, self._noted = f"profile-{self._noted}.json", self._noted + 1
        path = self.send(batches, self._helpers, self.runtime.settings(), name)
        write_note(self._note, Unfinished(journal_of(path), tuple(batch.programs for batch in batches)))
        return path

    def _all_was_read(self, path: str) -> None:
        """Removes the note about a manifest, the manifest and its journal."""
        if self._note:
            self._note.unlink(missing_ok=True)
            self.transport.discard(path, journal_of(path))

    def send(
        self,
        batches: Sequence[Batch],
        helpers: Sequence[Program],
        settings: Mapping[str, Any],
        name: str = MANIFEST,
    ) -> str:
        """Writes a manifest of batches onto the device; returns its path there.

        Args:
            batches: what is measured.
            helpers: programs that are added to each, the anchor first; none: nothing runs between the others.
            settings: of the runner.
            name: of the file; one of the same name is replaced.
        """
        manifest = {
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
        return self._push(manifest, name)

    def _push(self, manifest: Mapping[str, Any], name: str = MANIFEST) -> str:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(self.runtime.manifest(manifest))
            file.flush()
            return self.transport.push(Path(file.name), name)

    @retry(retry=retry_if_exception_type(RunLostError), stop=stop_after_attempt(LOST_RUNS), reraise=True)
    def weigh(self, program: Program) -> Mapping[str, float]:
        """Peak memory of a process that runs one program and nothing else.

        Returns:
            ``loading_mb`` and ``running_mb``: MiB above what the process held before.

        Raises:
            ProfilingError: the runner cannot tell.
        """
        said: list[str] = []
        manifest = {"settings": self.runtime.settings(), "memory": program.to_manifest(), "batches": []}
        code = self.transport.run(self.runtime.runner(self._push(manifest)), said.append)
        found = [line for text in said if (line := _event(text)) and line["event"] == "memory"]
        if not found:
            raise ProfilingError(
                f"device {self.device.name}: the memory of {program.key} was not measured (exit code {code}): "
                f"{self.transport.last_error or 'the runner said nothing'}"
            )
        return found[0]

    def _read(
        self,
        text: str,
        first: int,
        batches: Sequence[Batch],
        lines: Lines,
        on_records: Callable[[list[Record]], None],
    ) -> None:
        """Takes in what the runner printed; ``first``: the batch that its first one is."""
        if line := _event(text):
            self._take({**line, "batch": first + line.get("batch", 0)}, batches, lines, on_records)

    def _take(
        self,
        line: Mapping[str, Any],
        batches: Sequence[Batch],
        lines: Lines,
        on_records: Callable[[list[Record]], None],
    ) -> None:
        """Takes one line of the runner in; those of finished batches, which a journal repeats, are known."""
        if line["batch"] < lines.finished:
            return
        match line["event"]:
            case "program":
                lines.programs.setdefault(line["batch"], {})[line["key"]] = line
            case "weighed":
                lines.weighed[line["key"]] = line
            case "failed":
                lines.failures[line["key"]] = line["reason"]
            case "batch":
                batch = batches[line["batch"]]
                found = lines.programs.get(line["batch"], {})
                on_records(self._records(batch, found, line["seconds"], lines.weighed))
                lines.finished += 1
                self._states += [MachineState.from_line(line[when]) for when in ("before", "after") if when in line]

    def _records(
        self,
        batch: Batch,
        found: Mapping[str, Mapping[str, Any]],
        seconds: float,
        weighed: Mapping[str, Mapping[str, Any]],
    ) -> list[Record]:
        """Records of a batch: what replicas, calls and timing cost besides is taken off."""
        helpers = {program.key: program for program in self._helpers}
        if missing := sorted(set(helpers) - set(found)):
            raise ProfilingError(f"device {self.device.name}: the runtime cannot measure {', '.join(missing)}")
        costs = {key: robust(_blocks(program, found[key]), 1).latency_ms for key, program in helpers.items()}
        besides = {p.key: costs[SINK] * p.sink if p.short else costs[HARNESS] for p in (self.anchor, *batch.programs)}
        anchor_ms = costs[self.anchor.key] - besides[self.anchor.key]
        programs = (self.anchor, *(p for p in batch.programs if p.key in found and p.key != self.anchor.key))
        walks = {program.key: Walk.from_line(found[program.key]) for program in programs if program.steps}
        overhead = kernel_overhead(walks.values(), costs[HARNESS])
        share = seconds / max(1, len(programs))
        records = []
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
                record = Record(self.fingerprint.id, key, values, anchor_ms, passes, share / len(operators))
                records.append(_with_memory(record, copies, known[key]))
        return records


@contextmanager
def session_on(device: DeviceConfig | Session) -> Iterator[Session]:
    """A session that is open already as it is, else one of its own on the device."""
    if isinstance(device, Session):
        yield device
    else:
        with Session(device) as session:
            yield session


def _event(text: str) -> dict[str, Any] | None:
    """One of the runner's lines; None: what a library prints between them."""
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) and "event" in line else None


def _with_memory(record: Record, copies: int, line: Mapping[str, Any]) -> Record:
    """The record with weights of one copy and scratch memory, MiB, where the runner says them."""
    if "weights_mb" in line:
        record = replace(record, resident_weight_mb=heap_difference(line["weights_mb"] / copies))
    if "workspace_mb" in line:
        record = replace(record, workspace_mb=heap_difference(line["workspace_mb"]))
    return record


def _blocks(program: Program, line: Mapping[str, Any]) -> Any:
    return block_latencies(program, line["short"], line["long"])
