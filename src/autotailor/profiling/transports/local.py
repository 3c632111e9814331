"""The transport ``local``: this computer is the device."""

import os
import platform
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.errors import DeviceError
from autotailor.profiling.transports.base import Deadline, LineSplitter, Stream, Transport, overdue
from autotailor.project import scratch

CHUNK = 2**16
LOOK = 0.5
"""Seconds between two looks at a process that prints nothing."""
MOST_ERRORS = 2**16
"""Bytes at the end of the error stream from which the last lines are read."""


class LocalTransport(Transport):
    """Runs commands as child processes, pinned to the configured cores."""

    def __init__(self, device: DeviceConfig) -> None:
        self.device = device
        self._folder: Path | None = None

    @property
    def folder(self) -> Path:
        """This session's folder, made when it is first needed."""
        if self._folder is None:
            self._folder = scratch.make()
        return self._folder

    @property
    def identity(self) -> str:
        return "local"

    def check_configuration(self) -> None:
        """Refuses cores that this process may not use."""
        available = available_cores()
        if missing := sorted(set(self.device.cores) - available):
            raise DeviceError(
                f"device {self.device.name}: cores {missing} do not exist here or may not be used; "
                f"available are {sorted(available)}: set device.cores to some of them"
            )
        if self.device.threads > len(available):
            raise DeviceError(
                f"device {self.device.name}: threads is {self.device.threads}, but only {len(available)} cores "
                "are available: set device.threads to at most that"
            )

    def probe(self) -> Mapping[str, Any]:
        """Facts of this machine."""
        return {
            "machine": platform.machine(),
            "system": platform.system(),
            "cpu": cpu_name(),
            "cores": psutil.cpu_count(logical=True),
            "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        }

    def push(self, source: Path, name: str) -> str:
        """Copies a file into the session's folder."""
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        return str(target)

    def keep(self, source: Path) -> str:
        """The file itself: commands on this computer can run it where it is."""
        return str(source)

    def keep_all(self, directory: Path, names: Sequence[str], label: str) -> str:
        """The directory itself: commands on this computer can read it where it is."""
        return str(directory.resolve())

    def share(self, directory: Path, names: Sequence[str], folder: str) -> str:
        """The directory itself: commands on this computer can read it where it is."""
        return str(directory.resolve())

    def run(
        self, command: Sequence[str], on_line: Callable[[str], None], timeout: float | Deadline | None = None
    ) -> int:
        """Runs a child process. The deadline, or an exception in ``on_line``, kills the process and its children."""
        environment = {**os.environ, "OMP_NUM_THREADS": str(self.device.threads), "OPENBLAS_NUM_THREADS": "1"}
        with (
            tempfile.TemporaryFile("w+", errors="replace") as errors,
            subprocess.Popen(
                list(command), cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=errors
            ) as process,
        ):
            try:
                self._follow(process, on_line, Deadline.of(timeout), command[0])
                code = process.wait()
            except BaseException:
                _kill(process)
                raise
            end = errors.seek(0, os.SEEK_END)
            errors.seek(max(0, end - MOST_ERRORS))
            self.last_error = "\n".join(errors.read().splitlines()[-5:])
        return code

    def dial(self, port: int) -> Stream:
        """A socket."""
        try:
            connection = socket.create_connection(("127.0.0.1", port))
        except OSError as error:
            raise DeviceError(
                f"device {self.device.name}: nobody listens at port {port} ({error.strerror or error}): has the "
                "program ended?"
            ) from error
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _follow(
        self,
        process: subprocess.Popen[bytes],
        on_line: Callable[[str], None],
        deadline: Deadline | None,
        what: str,
    ) -> None:
        """Hands on a process's lines as they come until the process ends; raises OverdueError at the deadline."""
        assert process.stdout is not None
        splitter, pipe = LineSplitter(), process.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while True:
                if deadline is not None and deadline.left < 0:
                    raise overdue(self.device.name, what, deadline.seconds)
                has_ended = process.poll() is not None  # asked before the look, which then sees the last lines
                look = 0.0 if has_ended else LOOK if deadline is None else min(LOOK, max(0.0, deadline.left))
                if selector.select(look):
                    if not (data := os.read(pipe, CHUNK)):
                        break
                    for line in splitter.feed(data):
                        on_line(line)
                elif has_ended:
                    break  # the process has ended, though a child of it still holds the pipe
        for line in splitter.rest():
            on_line(line)
        if deadline is not None:
            try:
                process.wait(max(0.0, deadline.left))
            except subprocess.TimeoutExpired as error:
                raise overdue(self.device.name, what, deadline.seconds) from error

    def pull(self, name: str, target: Path) -> None:
        """Copies a file of the session's folder."""
        shutil.copyfile(self.folder / name, target)

    def cleanup(self) -> None:
        """Removes the session's folder."""
        if self._folder is not None:
            scratch.remove(self._folder)
            self._folder = None


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kills a process and everything that it has started."""
    with suppress(psutil.Error):
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.Error):
                child.kill()
    process.kill()


def available_cores() -> set[int]:
    """Core numbers that this process may use."""
    if sys.platform == "linux":
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def cpu_name(path: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's model name, as the system tells it; on ARM, which tells none, the numbers of its kinds of cores.

    Args:
        path: the system's file about its processors.
    """
    try:
        said = [line.partition(":") for line in path.read_text().splitlines()]
    except OSError:
        said = []
    facts = [(name.strip().lower(), value.strip()) for name, _, value in said]
    names = [value for name, value in facts if name in ("model name", "hardware")]
    cores = sorted({value for name, value in facts if name == "cpu part"})
    return next(iter(names), "") or " ".join(cores) or platform.processor() or platform.machine()
