"""Services of an ADB daemon: a refused service is noticed at once, and scripts run on daemons of every age.

A daemon refuses a service that it does not know by closing the stream. Daemons older than Android 5, which Linux boards
still have, lack the service ``exec:``. Their ``shell:`` runs a script in a terminal, which changes line feeds. So the
script's output is sent in base64 or hexadecimal digits, between two marks.
"""

import base64
import binascii
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from adb_shell import constants
from adb_shell.adb_device import AdbDevice
from adb_shell.adb_message import AdbMessage
from adb_shell.exceptions import AdbCommandFailureException, AdbTimeoutError, TcpTimeoutException
from adb_shell.hidden_helpers import _AdbTransactionInfo

from autotailor.profiling.errors import DeviceError, TransientError
from autotailor.profiling.transports.base import Stream

ENCODERS = {
    "base64": "base64",
    "xxd": "xxd -p",
    "od": "od -An -v -tx1",
    "hexdump": "hexdump -v -e '/1 \"%02x\"'",
}
"""Programs of coreutils, toybox and busybox that encode bytes as letters and digits; a device needs one of them."""

FRAME = (
    "\n".join(f"_{name}() {{ {command}; }}" for name, command in ENCODERS.items())
    + f"\nfor _e in {' '.join(ENCODERS)} none; do"
    + """
set -- $(printf a | _$_e 2>/dev/null); case "$1" in YQ==|61) break;; esac; done 2>/dev/null
echo MARK $_e
[ $_e = none ] || (
SCRIPT
) 2>&1 | _$_e
echo; echo MARK end
"""
)
"""Runs a script and prints its output encoded, preceded by the name of the encoding program."""


class ServiceRefusedError(Exception):
    """A daemon does not know a service."""


class NoticingAdbDevice(AdbDevice):  # type: ignore[misc]
    """An adb-shell device that notices at once when the daemon closes a stream instead of opening it.

    adb-shell's own class waits for its timeout in this case.
    """

    _local_id: int

    @property
    def most_bytes(self) -> int:
        """Bytes of the largest message that the daemon takes."""
        return int(self._maxdata)

    def _open(
        self, destination: bytes, transport_timeout_s: float | None, read_timeout_s: float, timeout_s: float | None
    ) -> Any:
        with self._local_id_lock:
            self._local_id = self._local_id % (2**32 - 1) + 1
            seconds = self._get_transport_timeout_s(transport_timeout_s)
            info = _AdbTransactionInfo(self._local_id, None, seconds, read_timeout_s, timeout_s)
        self._io_manager.send(AdbMessage(constants.OPEN, info.local_id, 0, destination + b"\0"), info)
        command, info.remote_id, _, _ = self._io_manager.read([constants.OKAY, constants.CLSE], info)
        if command == constants.CLSE:
            service = destination.partition(b":")[0].decode(errors="replace")
            if service == "sync":
                raise AdbCommandFailureException("the ADB daemon has no service for files (sync:)")
            raise ServiceRefusedError(service)
        return info


class AdbStream(Stream):
    """A connection through an ADB daemon.

    The daemon acknowledges each message before it takes the next one. What the other side sends in the meantime is kept
    for ``recv``.

    Args:
        device: connected.
        service: of the daemon, ``tcp:PORT``.
        broken: exceptions that mean a broken connection.
        give_up: closes the device, after whatever has ended an exchange in its middle.
        seconds: for the daemon to open the connection.

    Raises:
        ServiceRefusedError: nobody listens at the port, or the daemon does not lead there.
    """

    def __init__(
        self,
        device: NoticingAdbDevice,
        service: str,
        broken: tuple[type[Exception], ...],
        give_up: Callable[[], None],
        seconds: float,
    ) -> None:
        self._device, self._broken, self._give_up = device, broken, give_up
        self._info = device._open(service.encode(), seconds, seconds, None)
        self._arrived = bytearray()
        self._has_ended = False

    def settimeout(self, seconds: float | None) -> None:
        self._info.transport_timeout_s = seconds
        self._info.read_timeout_s = float("inf") if seconds is None else seconds

    def sendall(self, data: bytes) -> None:
        for start in range(0, len(data), self._device.most_bytes):
            if self._has_ended:
                raise BrokenPipeError("the other side has ended the connection")
            self._send(constants.WRTE, data[start : start + self._device.most_bytes])
            while self._take([constants.OKAY, constants.WRTE, constants.CLSE]) == constants.WRTE:
                pass

    def recv(self, most: int) -> bytes:
        while not self._arrived and not self._has_ended:
            self._take([constants.WRTE, constants.CLSE])
        data = bytes(self._arrived[:most])
        del self._arrived[:most]
        return data

    def close(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            with suppress(OSError):
                self._send(constants.CLSE)

    def _take(self, expected: list[bytes]) -> bytes:
        """Takes the daemon's next message of this connection; returns what kind of message it is."""
        with self._errors():
            command, _, _, data = self._device._io_manager.read(expected, self._info)
        if command == constants.WRTE:
            self._arrived += data
            self._send(constants.OKAY)
        if command == constants.CLSE:
            self._has_ended = True
        return bytes(command)

    def _send(self, command: bytes, data: bytes = b"") -> None:
        with self._errors():
            message = AdbMessage(command, self._info.local_id, self._info.remote_id, data)
            self._device._io_manager.send(message, self._info)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self._has_ended = True
            self._give_up()
            if isinstance(error, AdbTimeoutError | TcpTimeoutException):
                raise TimeoutError(str(error)) from error
            if isinstance(error, self._broken) and not isinstance(error, OSError):
                raise ConnectionResetError(str(error)) from error
            raise


def framed(script: str) -> tuple[str, str]:
    """A script whose output survives a terminal, and the mark before and behind that output."""
    mark = secrets.token_hex(8)
    return FRAME.replace("MARK", mark).replace("SCRIPT", script), mark


def unframed(name: str, answer: bytes, mark: str) -> tuple[bytes, str]:
    """What a framed script has printed, and the program that encoded the output.

    Args:
        name: the device's name, for messages.
        answer: everything that the terminal printed.
        mark: the mark that ``framed`` returned with the script.

    Raises:
        TransientError: the answer is not whole.
        DeviceError: the device has no program that can encode it.
    """
    match = re.search(rf"^{mark} (\w+)\r*$(.*)^{mark} end\r*$".encode(), answer, re.DOTALL | re.MULTILINE)
    if match is None:
        raise TransientError(f"device {name}: an answer was cut off")
    encoder, text = match[1].decode(), b"".join(match[2].split())
    if encoder == "none":
        raise DeviceError(
            f"device {name}: its ADB daemon lacks the service exec:, and for shell: the device needs one of the "
            f"programs {', '.join(ENCODERS)}: install coreutils, toybox or busybox there"
        )
    try:
        return (base64.b64decode(text, validate=True) if encoder == "base64" else bytes.fromhex(text.decode())), encoder
    except (binascii.Error, ValueError) as error:
        raise TransientError(f"device {name}: an answer came damaged ({error})") from error
