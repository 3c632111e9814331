"""The interface of a connection to a remote device: what every protocol (ADB, SSH) must be able to do."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from autotailor.profiling.transports.base import Stream


@dataclass(frozen=True)
class Patience:
    """How long this computer waits for a device, in seconds.

    Attributes:
        connect: for one attempt to connect.
        first: for the first answer of the device.
        lost: for a device that has answered before and is away; long enough for a restart.
        answer: for one short command, or one packet of a file.
        prompt: for a person to accept this computer on the device's screen.
        poll: between two looks at a running command.
        pause: before the second attempt, at most; the pause doubles with each further attempt.
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

    Each method raises TransientError when trying again can help, and DeviceError when it cannot. A link holds no state
    that a new ``open`` would not restore.

    Attributes:
        where: the device's address, for messages.
    """

    where: str

    @property
    def service(self) -> str:
        """Which way commands take to the device, for messages; empty where there is only one way."""
        return ""

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Whether ``open`` succeeded and ``close`` has not been called since."""

    @abstractmethod
    def open(self) -> None:
        """Connects."""

    @abstractmethod
    def close(self) -> None:
        """Closes the connection; safe to call twice."""

    @abstractmethod
    def shell(self, script: str) -> bytes:
        """Runs a short script in a POSIX shell and returns what the script prints, whatever its exit code is."""

    @abstractmethod
    def send(self, source: Path, path: str) -> None:
        """Copies a file to a path on the device whose folder exists."""

    @abstractmethod
    def fetch(self, path: str, target: Path) -> None:
        """Copies a file of the device to this computer."""

    @abstractmethod
    def dial(self, port: int) -> Stream:
        """Connects to a port of the device's loopback interface."""
