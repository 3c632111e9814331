"""One connection to a remote device: what a protocol must be able to do, and nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Patience:
    """How long a device is waited for, in seconds.

    Attributes:
        connect: one attempt to connect.
        first: until the device has answered for the first time.
        lost: until a device comes back that has answered before: long enough for a restart.
        answer: one short command, or one packet of a file.
        prompt: until a person has accepted this computer on the device's screen.
        poll: between two looks at a running command.
        pause: before the second attempt, at most; it doubles with each further one.
    """

    connect: float = 3.5
    first: float = 3.5
    lost: float = 180.0
    answer: float = 15.0
    prompt: float = 60.0
    poll: float = 0.5
    pause: float = 0.2


class Link(ABC):
    """A connection that may break at any time.

    Each method raises TransientError when trying again can help, DeviceError when not, and holds no state that a new
    ``open`` would not restore.

    Attributes:
        where: the device's address, for messages.
    """

    where: str

    @property
    def service(self) -> str:
        """By which of several ways commands get there, for messages; empty: there is one way only."""
        return ""

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Whether ``open`` succeeded and nothing has been noticed since."""

    @abstractmethod
    def open(self) -> None:
        """Connects."""

    @abstractmethod
    def close(self) -> None:
        """Lets go; safe to call twice."""

    @abstractmethod
    def shell(self, script: str) -> bytes:
        """What a short script prints when a POSIX shell runs it; its exit code is the caller's business."""

    @abstractmethod
    def send(self, source: Path, path: str) -> None:
        """Writes a file on the device; its folder exists."""

    @abstractmethod
    def fetch(self, path: str, target: Path) -> None:
        """Writes a file of the device here."""
