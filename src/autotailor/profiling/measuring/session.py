"""A session on a device: programs go out in batches, records of their measurements come back."""

from __future__ import annotations

import logging
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from tenacity import retry, retry_if_exception_type, stop_after_attempt

from autotailor.profiling.device import DeviceConfig, Fingerprint, fingerprint
from autotailor.profiling.errors import OverdueError, ProfilingError, RunLostError
from autotailor.profiling.host.lock import DeviceLock
from autotailor.profiling.measuring import pace
from autotailor.profiling.measuring.remaining import RunnerEnd, manifest_of, memory_manifest, remaining
from autotailor.profiling.measuring.unfinished import Unfinished, note_path, read_note, write_note
from autotailor.profiling.records.batch import LEAST_PASSES, Batch
from autotailor.profiling.records.events import PeakMemory, StrangeLineError, parse
from autotailor.profiling.records.limits import heap_difference
from autotailor.profiling.records.machine_state import MachineState, change
from autotailor.profiling.records.reading import Reading
from autotailor.profiling.records.record import Record
from autotailor.profiling.runtimes import Runtime, open_runtime
from autotailor.profiling.runtimes.base import Program, journal_of
from autotailor.profiling.transports import Transport, open_transport
from autotailor.profiling.transports.base import Deadline

logger = logging.getLogger(__name__)

MANIFEST = "manifest.json"
LOST_RUNS = 3
"""How often in a row a runner may be lost, with no batch finished in between, before the session gives up."""
HUNG_RUNS = 3
"""How often in a row a runner may hang, with no batch finished in between, before the session gives up."""
TURN_SECONDS = (5.0, 15.0)
"""Least and most seconds between two attempts to claim a device that another run uses."""
REMIND_SECONDS = 60.0
"""Seconds between two messages about a device that another run uses."""


class Session:
    """Holds a device, its transport and its runtime; to be used in a ``with``. A device has one session at a time.

    Args:
        device: the device's configuration.
        notes: a folder for notes, which let a later session read what this session has started and not read itself;
            None: no notes are kept.

    Attributes:
        fingerprint: of the device, its runtime and its settings; known once the session is open.
        anchor: the program that is part of every batch, and shows how fast the device is.
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
        """Waits until no other run uses the device, be it under another address or from another computer."""
        told = -REMIND_SECONDS
        while user := self.transport.claim():
            if time.monotonic() - told >= REMIND_SECONDS:
                logger.warning(
                    "device %s is in use by %s: waiting until it is free; end that to begin now", self.device.name, user
                )
                told = time.monotonic()
            time.sleep(random.uniform(*TURN_SECONDS))

    def network(self, key: str, directory: Path, inputs: Sequence[tuple[int, ...]]) -> Program:
        """The program of a converted network, whose files are copied to the device once in a session.

        Args:
            key: the key of the network's records.
            directory: folder of the network's files on this computer.
            inputs: shapes of the inputs, without the batch.
        """
        if directory not in self._networks:
            name = f"networks/{len(self._networks) + 1}"
            self._networks[directory] = self.transport.share(directory, self.runtime.files, name)
        return self.runtime.network(key, directory, inputs, self._networks[directory])

    def take_left(self, keep: Callable[[list[Record]], None]) -> None:
        """Hands on what an earlier session with the same notes and fingerprint has started, and removes its journal.

        Args:
            keep: stores the records. Records that the earlier session has stored itself are among them.
        """
        left = read_note(self._note) if self._note else None
        if left is None or self._note is None:
            return
        records: list[Record] = []
        reading = self._reading([Batch(programs, 0.0) for programs in left.batches], records.extend)
        try:
            for text in self.transport.rescue(left.journal).splitlines():
                reading.take(text)
            strange = reading.first_strange or next((why for _, why in reading.again.values()), "")
        except ProfilingError as error:
            strange = str(error)
        if strange:
            logger.warning(
                "device %s: an earlier run's journal is not whole (%s); what it lacks is measured again",
                self.device.name,
                strange,
            )
        keep(records)
        self.transport.forget(left.journal)
        self._note.unlink(missing_ok=True)

    def measure(self, batches: Sequence[Batch], on_records: Callable[[list[Record]], None]) -> dict[str, str]:
        """Measures batches, and hands on the records of each batch as soon as it is done.

        A crash of the runner costs one batch, whose programs are tried again one by one. So does a runner that hangs:
        it is ended when its batch takes longer than planned. A runner that was lost with its device is started again,
        and goes on where it was. Programs of which the device says nothing sensible are measured again.

        Args:
            batches: what to measure.
            on_records: takes the records of one batch, the anchor's among them.

        Returns:
            Program key to the reason why the program cannot be measured.

        Raises:
            OverdueError: the runner hangs again and again, whatever it is asked.
            ProfilingError: the runner ends early, or says nothing sensible of what is part of every batch.
        """
        failures: dict[str, str] = {}
        waiting, hung = list(batches), 0
        while waiting:
            reading = self._reading(waiting, on_records)
            try:
                code = self._run(waiting, reading)
                hung = 0
                why = f"the runtime crashed (signal {-code})"  # what a code other than 0 means
            except OverdueError as error:
                hung = 1 if reading.finished else hung + 1
                self._say_hung(error, hung)
                code, why = -1, "the runner hung over it and was ended"
            self._states += reading.states
            failures.update(reading.failures)
            end = RunnerEnd(code, why, self.transport.last_error)
            waiting = remaining(self.device.name, waiting, reading, end, failures)
        return failures

    def _reading(self, batches: Sequence[Batch], on_records: Callable[[list[Record]], None]) -> Reading:
        return Reading(self.device.name, self.fingerprint.id, self._helpers, batches, on_records)

    def _say_hung(self, error: OverdueError, times: int) -> None:
        """Warns that the runner hung; raises OverdueError where it has hung too often in a row."""
        if times >= HUNG_RUNS:
            raise OverdueError(
                f"{error}: it hung {times} times in a row before anything was done; restart the device, or, where it "
                "is that slow, set device.hang_minutes (what was measured is kept: run again to go on)"
            ) from error
        logger.warning("%s; going on with what is left, one by one", error)

    def _run(self, batches: Sequence[Batch], reading: Reading) -> int:
        """Runs the runner over all batches, and starts it again where it is lost; returns its exit code.

        Raises:
            OverdueError: a batch takes longer than its plan allows, and the runner was ended.
            RunLostError: the runner was lost again and again, with no batch finished in between.
        """
        path, lost = self._push_manifest(batches), 0
        while True:
            before = reading.finished
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
                lost = 1 if reading.finished > before else lost + 1
                if lost >= LOST_RUNS:
                    raise
                logger.warning("%s; going on with what is left", error)
            if not self.runtime.resumes:
                path = self._push_manifest(reading.restart())

    def _renew(self, deadline: Deadline, batches: Sequence[Batch], reading: Reading) -> None:
        deadline.renew(self._allowed(batches, reading.finished))

    def _allowed(self, batches: Sequence[Batch], index: int) -> float:
        """Seconds that a batch may take; after the last batch, seconds that the runner may take to end."""
        planned = 0.0
        if index < len(batches):
            batch = batches[index]
            programs = (*self._helpers, *batch.programs)
            planned = pace.planned_seconds(programs, batch.seconds, batch.least_passes, self.runtime.settings())
        return pace.allowed_seconds(planned, self.device.hang_minutes)

    def _push_manifest(self, batches: Sequence[Batch]) -> str:
        """Writes the manifest of some batches onto the device, and a note about it; returns its path there."""
        if self._note is None:
            return self.send(batches, self._helpers, self.runtime.settings())
        # Each manifest has a new name, and so a new journal: no note is read together with another manifest's journal.
        name, self._noted = f"profile-{self._noted}.json", self._noted + 1
        path = self.send(batches, self._helpers, self.runtime.settings(), name)
        write_note(self._note, Unfinished(journal_of(path), tuple(batch.programs for batch in batches)))
        return path

    def _all_was_read(self, path: str) -> None:
        """Removes a manifest whose lines have all been read, its journal, and the note about it."""
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
            helpers: programs that are added to each batch, the anchor first; none: nothing runs between the others.
            settings: the runner's settings.
            name: the file's name; a file of the same name is replaced.
        """
        return self._push(manifest_of(batches, helpers, settings), name)

    def _push(self, manifest: Mapping[str, Any], name: str = MANIFEST) -> str:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(self.runtime.manifest(manifest))
            file.flush()
            return self.transport.push(Path(file.name), name)

    @retry(retry=retry_if_exception_type(RunLostError), stop=stop_after_attempt(LOST_RUNS), reraise=True)
    def weigh(self, program: Program) -> PeakMemory:
        """Peak memory of a process that runs one program and nothing else.

        Raises:
            ProfilingError: the runner cannot tell.
        """
        peaks: list[PeakMemory] = []

        def on_line(text: str) -> None:
            with suppress(StrangeLineError):
                if isinstance(event := parse(text), PeakMemory):
                    peaks.append(event)

        settings = self.runtime.settings()
        path = self._push(memory_manifest(program, settings))
        planned = pace.planned_seconds((program,), 0.0, LEAST_PASSES, settings)
        allowed = pace.allowed_seconds(planned, self.device.hang_minutes)
        code = self.transport.run(self.runtime.runner(path), on_line, allowed)
        for peak in reversed(peaks):
            loading, running = heap_difference(peak.loading_mb), heap_difference(peak.running_mb)
            if loading is not None and running is not None:
                return PeakMemory(loading, running)
        raise ProfilingError(
            f"device {self.device.name}: the memory of {program.key} was not measured (exit code {code}): "
            f"{self.transport.last_error or 'the runner said nothing sensible'}"
        )


@contextmanager
def session_on(device: DeviceConfig | Session) -> Iterator[Session]:
    """A session on a device: one that is open already is handed on, else a new one is opened, and closed afterwards."""
    if isinstance(device, Session):
        yield device
    else:
        with Session(device) as session:
            yield session
