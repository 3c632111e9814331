"""The interface that every transport offers."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from autotailor.profiling.errors import OverdueError


class Deadline:
    """When a command has to have ended; what follows its lines may see that it gets on, and renew it.

    Args:
        seconds: from now.
    """

    def __init__(self, seconds: float) -> None:
        self.renew(seconds)

    def renew(self, seconds: float) -> None:
        """So many seconds, from now."""
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until then; below 0: it is over."""
        return self._end - time.monotonic()

    @classmethod
    def of(cls, timeout: float | Deadline | None) -> Deadline | None:
        """A deadline as it is, or one that begins now."""
        return cls(timeout) if isinstance(timeout, int | float) else timeout


class Transport(ABC):
    """Commands and files on one device, in a folder of its own that ``cleanup`` removes.

    Attributes:
        last_error: the end of what the last command wrote to its error stream.
    """

    last_error: str = ""

    @property
    @abstractmethod
    def identity(self) -> str:
        """Names the device itself, whatever the configuration calls it: one run at a time for each identity."""

    def check_configuration(self) -> None:  # noqa: B027 (nothing to check is a fine default)
        """Raises DeviceError for what can be refused without asking the device."""

    def check(self) -> None:
        """Raises DeviceError when the device cannot be used; quick, changes nothing."""
        self.check_configuration()

    @property
    def service(self) -> str:
        """By which of several ways commands get there, once it has answered; empty: there is one way only."""
        return ""

    @abstractmethod
    def probe(self) -> Mapping[str, Any]:
        """Facts of the hardware: ``machine``, ``cpu``, ``cores``, ``caches`` ... JSON values only."""

    @abstractmethod
    def push(self, source: Path, name: str) -> str:
        """Copies a file into the device's folder, verified there; returns its path there."""

    @abstractmethod
    def keep(self, source: Path) -> str:
        """Copies a program where later runs find it again, verified; returns its path there."""

    @abstractmethod
    def share(self, directory: Path, names: Sequence[str], folder: str) -> str:
        """Makes files readable for commands on the device, for this session.

        Args:
            directory: where they are here.
            names: of the files.
            folder: for them, in the device's folder.

        Returns:
            The folder on the device that holds them.
        """

    @abstractmethod
    def run(
        self, command: Sequence[str], on_line: Callable[[str], None], timeout: float | Deadline | None = None
    ) -> int:
        """Runs a command in the device's folder, hands on each line of its output as it comes.

        Of a line that is longer than `lines.LONGEST` the beginning comes.

        Args:
            command: program and arguments.
            on_line: what takes the lines; an exception in it ends the command.
            timeout: when the command is ended, whatever it prints; seconds, or a deadline that ``on_line`` may renew;
                None: never.

        Returns:
            The exit code; negative: killed by that signal.

        Raises:
            RunLostError: it ended without an exit code; what was handed on until then stands.
            OverdueError: it took longer than ``timeout``.
            DeviceError: the device stays away.
        """

    @abstractmethod
    def pull(self, name: str, target: Path) -> None:
        """Copies a file of the device's folder here, verified; nothing half written stays."""

    def claim(self) -> str | None:
        """Makes the device's folder, unless another run works on the device that holds another lock.

        Returns:
            Who that is: under another address, or from another computer; None: nobody, the device is this one's.
        """
        return None

    def rescue(self, path: str) -> str:
        """Stops what a dead run left in the folder of a file, and returns the file's text; empty: it is gone."""
        return ""

    def forget(self, path: str) -> None:  # noqa: B027 (nothing is left behind where a run ends with its computer)
        """Removes the folder of a dead run's file: it was rescued, and what it says is kept here."""

    def discard(self, manifest: str, journal: str) -> None:  # noqa: B027
        """Removes a manifest and its journal, which was read; a device that is away is left as it is."""

    @abstractmethod
    def cleanup(self) -> None:
        """Removes the device's folder; safe to call twice."""

    def __enter__(self) -> Transport:
        return self

    def __exit__(self, *_: object) -> None:
        self.cleanup()


def overdue(device: str, command: str, timeout: float) -> OverdueError:
    """The error for a command that was stopped because it took too long."""
    return OverdueError(
        f"device {device}: {Path(command).name} did not end within {timeout:g} s and was stopped: "
        "allow it more time, or see whether the device is busy or throttled"
    )
