"""A session on a device: programs go out in batches, records of measurements come back."""

from __future__ import annotations

import logging
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tenacity import retry, retry_if_exception_type, stop_after_attempt

from autotailor.profiling.device import DeviceConfig, Fingerprint, fingerprint
from autotailor.profiling.errors import OverdueError, ProfilingError, RunLostError
from autotailor.profiling.host.lock import DeviceLock
from autotailor.profiling.measuring import pace
from autotailor.profiling.measuring.unfinished import Unfinished, note_path, read_note, write_note
from autotailor.profiling.records.batch import LEAST_PASSES, Batch
from autotailor.profiling.records.limits import heap_difference
from autotailor.profiling.records.machine_state import MachineState, change
from autotailor.profiling.records.reading import Reading
from autotailor.profiling.records.record import Record
from autotailor.profiling.records.runner_lines import StrangeLineError, check_memory, parse
from autotailor.profiling.runtimes import Runtime, open_runtime
from autotailor.profiling.runtimes.base import Program, journal_of
from autotailor.profiling.transports import Transport, open_transport
from autotailor.profiling.transports.base import Deadline

logger = logging.getLogger(__name__)

BLOCKS = 8
LOST_RUNS = 3
"""Runs of the runner in a row that may be lost before anything is finished."""
MANIFEST = "manifest.json"
MEMORY = ("loading_mb", "running_mb")
HUNG_RUNS = 3
"""Times in a row that the runner may hang before anything is finished."""
STRANGE_VISITS = 3
"""Times that a device may say nothing sensible of a program."""
NETWORK_PASSES = 3
"""Least passes of whole networks: a run of those is as long as many of an operator."""
ANCHOR_SHARE = 0.1
"""Share of a pass that the anchor is brought up to: the speed that it shows is that of all that ran beside it."""
TURN_SECONDS = (5.0, 15.0)
"""Least and most seconds until a device is claimed again that another run uses."""
REMIND_SECONDS = 60.0
"""Between two messages while waiting for it."""


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
        reading = self._reading([Batch(programs, 0.0) for programs in left.batches], records.extend)
        try:
            for text in self.transport.rescue(left.journal).splitlines():
                reading.take(text)
            strange = reading.lines.first_strange or next((why for _, why in reading.lines.again.values()), "")
        except ProfilingError as error:
            strange = str(error)
        if strange:
            logger.warning("device %s: an earlier run's journal is not whole (%s)", self.device.name, strange)
        keep(records)
        self.transport.forget(left.journal)
        self._note.unlink(missing_ok=True)

    def measure(self, batches: Sequence[Batch], on_records: Callable[[list[Record]], None]) -> dict[str, str]:
        """Measures batches; hands on the records of each as soon as it is done.

        A crash of the runner costs one batch: its programs are tried again one by one, the rest goes on. So does a
        runner that hangs: it is ended when its batch takes longer than its plan allows. A runner that was lost with its
        device is started again, and goes on where it was. What the device says nothing sensible of is measured again.

        Returns:
            Program key to the reason why it cannot be measured.

        Raises:
            OverdueError: the device hangs, whatever it is asked.
            ProfilingError: the runner ends early, or says nothing sensible of what is part of every batch.
        """
        failures: dict[str, str] = {}
        waiting, hung = list(batches), 0
        while waiting:
            reading = self._reading(waiting, on_records)
            try:
                code = self._run(waiting, reading)
                hung, why = 0, f"the runtime crashed (signal {-code})"
            except OverdueError as error:
                hung = 1 if reading.lines.finished else hung + 1
                self._say_hung(error, hung)
                code, why = -1, "the runner hung over it and was ended"
            self._states += reading.states
            failures.update(reading.lines.failures)
            left = self._left(waiting, reading, code, why, failures)
            waiting = left + self._again(waiting, reading, failures)
        return failures

    def _reading(self, batches: Sequence[Batch], on_records: Callable[[list[Record]], None]) -> Reading:
        return Reading(self.device.name, self.fingerprint.id, self._helpers, batches, on_records)

    def _say_hung(self, error: OverdueError, times: int) -> None:
        """Says that the runner hung; raises OverdueError where it does so whatever it is asked."""
        if times >= HUNG_RUNS:
            raise OverdueError(
                f"{error}: it hung {times} times in a row before anything was done; restart the device, or, where it "
                "is that slow, set device.hang_minutes (what was measured is kept, run again to go on)"
            ) from error
        logger.warning("%s; going on with what is left, one by one", error)

    def _left(
        self, batches: Sequence[Batch], reading: Reading, code: int, why: str, failures: dict[str, str]
    ) -> list[Batch]:
        """What is still to be measured when the runner has ended with an exit code; adds to the failures.

        Raises:
            ProfilingError: it ended early by itself, or over what is part of every batch.
        """
        name = self.device.name
        if reading.lines.finished == len(batches):
            return []
        if code > 0:
            raise ProfilingError(
                f"device {name}: the runner ended with exit code {code} before its work was done: "
                f"{self.transport.last_error or 'it said nothing'}"
            )
        if code == 0:
            reading.end_before(len(batches), f"the runner ended, and said no more ({self.transport.last_error})")
            return []
        batch, *rest = batches[reading.lines.finished :]
        if not batch.programs:
            raise ProfilingError(f"device {name}: {why} with nothing but the anchor operator to run")
        if len(batch.programs) == 1:
            failures[batch.programs[0].key] = why
            return rest
        each = batch.seconds / len(batch.programs)
        return [replace(batch, programs=(program,), seconds=each) for program in batch.programs] + rest

    def _again(self, batches: Sequence[Batch], reading: Reading, failures: dict[str, str]) -> list[Batch]:
        """What the device has said nothing sensible of, as batches; adds to the failures what it never does.

        Raises:
            ProfilingError: it never says anything sensible of what is part of every batch.
        """
        lines, again = reading.lines, []
        for index, (programs, reason) in sorted(lines.again.items()):
            batch, attempt = batches[index], batches[index].attempt + 1
            if attempt < STRANGE_VISITS:
                share = len(programs) / max(1, len(batch.programs)) if programs else 1.0
                again.append(replace(batch, programs=programs, seconds=batch.seconds * share, attempt=attempt))
                continue
            if not programs:
                raise ProfilingError(f"device {self.device.name}: the runner makes no sense {attempt} times: {reason}")
            failures |= {program.key: f"what the device says of it makes no sense: {reason}" for program in programs}
        if lines.strange or again:
            logger.warning(
                "device %s: %d lines of its runner make no sense (%s); %d programs are measured again",
                self.device.name,
                lines.strange,
                lines.first_strange or next(iter(lines.again.values()))[1],
                sum(len(batch.programs) for batch in again),
            )
        return again

    def _run(self, batches: Sequence[Batch], reading: Reading) -> int:
        """The runner over all batches, started again where it is lost: its exit code.

        Raises:
            OverdueError: a batch takes longer than its plan allows, and the runner was ended.
        """
        path, lost = self._push_manifest(batches), 0
        while True:
            before = reading.lines.finished
            deadline = Deadline(self._allowed(batches, before))
            reading.on_end = partial(self._renew, deadline, batches, reading)
            try:
                code = self.transport.run(self.runtime.runner(path), reading.take, deadline)
                self._all_was_read(path)
                return code
            except OverdueError:
                self._all_was_read(path)
                raise
            except RunLostError as error:
                lost = 1 if reading.lines.finished > before else lost + 1
                if lost >= LOST_RUNS:
                    raise
                logger.warning("%s; going on with what is left", error)
            if not self.runtime.resumes:
                reading.first = reading.lines.finished
                path = self._push_manifest(batches[reading.first :])

    def _renew(self, deadline: Deadline, batches: Sequence[Batch], reading: Reading) -> None:
        deadline.renew(self._allowed(batches, reading.lines.finished))

    def _allowed(self, batches: Sequence[Batch], index: int) -> float:
        """Seconds that a batch may take; behind the last one: the runner, to end."""
        planned = 0.0
        if index < len(batches):
            batch = batches[index]
            programs = (*self._helpers, *batch.programs)
            planned = pace.planned_seconds(programs, batch.seconds, batch.least_passes, self.runtime.settings())
        return pace.allowed_seconds(planned, self.device.hang_minutes)

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
        found: dict[str, float | None] = {}

        def on_line(text: str) -> None:
            with suppress(StrangeLineError):
                if (line := parse(text)) and line["event"] == "memory":
                    check_memory(line, MEMORY)
                    found.update({name: heap_difference(line.get(name)) for name in MEMORY})

        settings = self.runtime.settings()
        manifest = {"settings": settings, "memory": program.to_manifest(), "batches": []}
        planned = pace.planned_seconds((program,), 0.0, LEAST_PASSES, settings)
        allowed = pace.allowed_seconds(planned, self.device.hang_minutes)
        code = self.transport.run(self.runtime.runner(self._push(manifest)), on_line, allowed)
        memory = {name: value for name, value in found.items() if value is not None}
        if len(memory) < len(MEMORY):
            raise ProfilingError(
                f"device {self.device.name}: the memory of {program.key} was not measured (exit code {code}): "
                f"{self.transport.last_error or 'the runner said nothing sensible'}"
            )
        return memory


@contextmanager
def session_on(device: DeviceConfig | Session) -> Iterator[Session]:
    """A session that is open already as it is, else one of its own on the device."""
    if isinstance(device, Session):
        yield device
    else:
        with Session(device) as session:
            yield session
