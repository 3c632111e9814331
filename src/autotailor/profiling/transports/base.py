"""The interface that every transport offers."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from autotailor.profiling.errors import DeviceError, OverdueError

LONGEST = 2**22
"""Bytes of a line that are kept; the rest is dropped.

The limit is ten times the line that the runner prints for a network of two thousand operators.
"""


class Deadline:
    """When a command has to have ended. Whoever reads the command's lines may renew the deadline as long as lines come.

    Args:
        seconds: how far the deadline is from now.
    """

    def __init__(self, seconds: float) -> None:
        self.renew(seconds)

    def renew(self, seconds: float) -> None:
        """Moves the deadline to so many seconds from now."""
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until the deadline; negative once it has passed."""
        return self._end - time.monotonic()

    @classmethod
    def of(cls, timeout: float | Deadline | None) -> Deadline | None:
        """Turns seconds into a deadline that counts from now; hands on a deadline, or None, as it is."""
        return cls(timeout) if isinstance(timeout, int | float) else timeout


class Stream(Protocol):
    """A connection to a port of a device: a blocking socket, or what does and raises the same."""

    def settimeout(self, seconds: float | None, /) -> None:
        """Sets for how long ``sendall`` and ``recv`` wait before they raise TimeoutError; None waits for ever."""

    def sendall(self, data: bytes, /) -> None:
        """Sends all of the data; raises OSError."""

    def recv(self, most: int, /) -> bytes:
        """At least one byte and at most so many; none where the other side has ended the connection; raises OSError."""

    def close(self) -> None:
        """Ends the connection; safe to call twice."""


class Transport(ABC):
    """Commands and files on one device. Both use a folder that the transport makes there and ``cleanup`` removes.

    Attributes:
        last_error: the last lines that the latest command wrote to its error stream.
    """

    last_error: str = ""

    @property
    @abstractmethod
    def identity(self) -> str:
        """Names the device itself, whatever the configuration calls it. One run at a time uses an identity."""

    def check_configuration(self) -> None:  # noqa: B027 (nothing to check is a fine default)
        """Raises DeviceError for what can be refused without asking the device."""

    def check(self) -> None:
        """Raises DeviceError when the device cannot be used. The check is quick and changes nothing on the device."""
        self.check_configuration()

    @property
    def service(self) -> str:
        """Which way commands take to the device, known once it has answered; empty where there is only one way."""
        return ""

    @abstractmethod
    def probe(self) -> Mapping[str, Any]:
        """Facts of the hardware: ``machine``, ``cpu``, ``cores``, ``caches`` ... JSON values only."""

    @abstractmethod
    def push(self, source: Path, name: str) -> str:
        """Copies a file into the folder on the device, verifies the copy, and returns the copy's path."""

    @abstractmethod
    def keep(self, source: Path) -> str:
        """Copies a program to where later runs find it again, verifies the copy, and returns the copy's path."""

    def keep_all(self, directory: Path, names: Sequence[str], label: str) -> str:
        """Copies files to where later runs find those again that have not changed, and verifies the copies.

        Args:
            directory: where the files are on this computer.
            names: the files' names below it.
            label: of these files; another call with the label replaces them.

        Returns:
            A folder on the device that holds all of the files, until ``cleanup``.
        """
        return self.share(directory, names, label)

    @abstractmethod
    def share(self, directory: Path, names: Sequence[str], folder: str) -> str:
        """Makes files readable for commands on the device until ``cleanup``.

        Args:
            directory: where the files are on this computer.
            names: the files' names.
            folder: name of the folder for the files, below the transport's folder on the device.

        Returns:
            The folder on the device that holds them.
        """

    @abstractmethod
    def run(
        self, command: Sequence[str], on_line: Callable[[str], None], timeout: float | Deadline | None = None
    ) -> int:
        """Runs a command in the folder on the device, and hands on each line of the command's output as it comes.

        A line that is longer than ``LONGEST`` is cut there.

        Args:
            command: program and arguments.
            on_line: takes each line; an exception in ``on_line`` ends the command.
            timeout: when the command is ended, whatever it prints: seconds, a deadline that ``on_line`` may renew, or
                None for never.

        Returns:
            The exit code; negative where a signal killed the command: minus the signal's number.

        Raises:
            RunLostError: the command ended without an exit code; lines that were handed on until then are valid.
            OverdueError: the command took longer than ``timeout``.
            DeviceError: the device stays away.
        """

    def dial(self, port: int) -> Stream:
        """Connects to a port of the device's loopback interface. It is tried once.

        Raises:
            TransientError: the device is away; trying again can help.
            DeviceError: nobody listens at the port, or the transport does not lead to ports.
        """
        raise DeviceError(
            f"the transport {type(self).__name__} does not lead to ports of the device: give it the method `dial` "
            "(docs/extending/transport.md), or start the program on the device by hand"
        )

    @abstractmethod
    def pull(self, name: str, target: Path) -> None:
        """Copies a file from the folder on the device to this computer and verifies it; leaves no half-written file."""

    def claim(self) -> str | None:
        """Makes the folder on the device, unless another run uses the device.

        The other run holds another lock when it reaches the device under another address, or from another computer.

        Returns:
            Who runs there; None where nobody does, so that the device now belongs to this run.
        """
        return None

    def rescue(self, path: str) -> str:
        """Stops what a dead run left in a file's folder, and returns the file's text; empty if the file is gone."""
        return ""

    def forget(self, path: str) -> None:  # noqa: B027 (nothing is left behind where a run ends with its computer)
        """Removes the folder of a dead run's file, after the file was rescued and its content stored here."""

    def discard(self, manifest: str, journal: str) -> None:  # noqa: B027
        """Removes a manifest and its journal after the journal was read. A device that is away is left as it is."""

    @abstractmethod
    def cleanup(self) -> None:
        """Removes the folder on the device; safe to call twice."""

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


def split_address(device: str, address: str) -> tuple[str | None, str, int | None]:
    """Splits ``[user@]host[:port]``.

    Args:
        device: the device's name, for messages.
        address: what the configuration says; an IPv6 address stands in brackets.

    Returns:
        User, host and port; None for a user or port that the address does not give.

    Raises:
        DeviceError: the text is no address.
    """
    try:
        parts = urlsplit(f"//{address}")
        port = parts.port
    except ValueError:
        parts, port = None, None
    if parts is None or not parts.hostname or parts.path or parts.query:
        raise DeviceError(
            f"device {device}: device.address is {address!r}, expected a host name or address with an optional port, "
            f"for instance board.local or 192.168.1.7:5555"
        )
    return parts.username, parts.hostname, port


class LineSplitter:
    """Takes bytes as they come, and hands out each line once it is complete."""

    def __init__(self) -> None:
        self._begun = bytearray()

    def feed(self, data: bytes) -> Iterator[str]:
        """Lines that end in these bytes, each cut after `LONGEST` bytes."""
        *ended, begun = data.split(b"\n")
        for part in ended:
            self._add(part)
            yield self._take()
        self._add(begun)

    def rest(self) -> Iterator[str]:
        """The text behind the last line feed, if there is any."""
        if self._begun:
            yield self._take()

    def _add(self, part: bytes) -> None:
        self._begun += part[: LONGEST - len(self._begun)]

    def _take(self) -> str:
        line = self._begun.decode(errors="replace").rstrip("\r")
        self._begun.clear()
        return line
