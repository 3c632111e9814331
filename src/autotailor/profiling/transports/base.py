"""The interface that every transport offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any


class Transport(ABC):
    """Commands and files on one device, in a folder of its own that ``cleanup`` removes.

    Attributes:
        last_error: the end of what the last command wrote to its error stream.
    """

    last_error: str = ""

    def check(self) -> None:  # noqa: B027 (nothing to check is a fine default)
        """Raises DeviceError when the device cannot be used; quick, changes nothing."""

    @abstractmethod
    def probe(self) -> Mapping[str, Any]:
        """Facts of the hardware: ``machine``, ``cpu``, ``cores``, ``caches`` ... JSON values only."""

    @abstractmethod
    def push(self, source: Path, name: str) -> str:
        """Copies a file into the device's folder; returns its path there."""

    @abstractmethod
    def run(self, command: Sequence[str], on_line: Callable[[str], None]) -> int:
        """Runs a command in the device's folder, hands on each line of its output as it comes.

        Returns:
            The exit code; negative: killed by that signal.
        """

    @abstractmethod
    def pull(self, name: str, target: Path) -> None:
        """Copies a file of the device's folder here."""

    @abstractmethod
    def cleanup(self) -> None:
        """Removes the device's folder; safe to call twice."""

    def __enter__(self) -> Transport:
        return self

    def __exit__(self, *_: object) -> None:
        self.cleanup()
