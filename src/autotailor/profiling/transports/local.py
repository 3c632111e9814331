"""The machine this runs on."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.errors import DeviceError
from autotailor.profiling.transports.base import Transport, overdue


class LocalTransport(Transport):
    """Runs commands as child processes, pinned to the configured cores."""

    def __init__(self, device: DeviceConfig) -> None:
        self.device = device
        self._folder: Path | None = None

    @property
    def folder(self) -> Path:
        """The folder of this session, made when first needed."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="autotailor-"))
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
        """The file itself."""
        return str(source)

    def share(self, directory: Path, names: Sequence[str], folder: str) -> str:
        """The directory itself."""
        return str(directory.resolve())

    def run(self, command: Sequence[str], on_line: Callable[[str], None], timeout: float | None = None) -> int:
        """Runs a child process; it dies with an exception in ``on_line``."""
        killed = threading.Event()
        environment = {**os.environ, "OMP_NUM_THREADS": str(self.device.threads), "OPENBLAS_NUM_THREADS": "1"}
        with (
            tempfile.TemporaryFile("w+", errors="replace") as errors,
            subprocess.Popen(
                list(command), cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
            ) as process,
        ):

            def stop() -> None:
                killed.set()
                process.kill()

            timer = threading.Timer(timeout or 0, stop)
            try:
                if timeout is not None:
                    timer.start()
                assert process.stdout is not None
                for line in process.stdout:
                    on_line(line.rstrip("\n"))
                code = process.wait()
            except BaseException:
                process.kill()
                raise
            finally:
                timer.cancel()
            errors.seek(0)
            self.last_error = "\n".join(errors.read().splitlines()[-5:])
        if killed.is_set():
            raise overdue(self.device.name, command[0], timeout or 0)
        return code

    def pull(self, name: str, target: Path) -> None:
        """Copies a file of the session's folder."""
        shutil.copyfile(self.folder / name, target)

    def cleanup(self) -> None:
        """Removes the session's folder."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def available_cores() -> set[int]:
    """Core numbers that this process may use."""
    if sys.platform == "linux":
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def cpu_name() -> str:
    """The processor's model name, as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.lower().startswith(("model name", "hardware")):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
