"""The transport ``adb``: devices that run an ADB daemon, over the network or USB, without the program ``adb``."""

import io
import logging
import secrets
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

from adb_shell import exceptions as adb
from adb_shell.transport.base_transport import BaseTransport

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.errors import AuthorisationError, DeviceError, TransientError
from autotailor.profiling.transports.adb.streams import (
    AdbStream,
    NoticingAdbDevice,
    ServiceRefusedError,
    framed,
    unframed,
)
from autotailor.profiling.transports.adb.tcp import WholeBufferTcp, signer
from autotailor.profiling.transports.adb.usb import open_usb, usb_fault
from autotailor.profiling.transports.base import Stream, split_address
from autotailor.profiling.transports.remote.link import Link, Patience
from autotailor.profiling.transports.remote.shell import refusal
from autotailor.profiling.transports.remote.transport import RemoteTransport

logger = logging.getLogger(__name__)

PORT = 5555
BASE = "/data/local/tmp/autotailor"
"""Folder for the files of all runs: the shell's user may write and execute there on every Android device."""

REFUSED = (adb.PushFailedError, adb.AdbCommandFailureException)
BROKEN = (
    OSError,
    adb.AdbTimeoutError,
    adb.AdbConnectionError,
    adb.TcpTimeoutException,
    adb.InvalidChecksumError,
    adb.InvalidCommandError,
    adb.InvalidResponseError,
    adb.UsbReadFailedError,
    adb.UsbWriteFailedError,
    struct.error,
    ValueError,  # a header that makes no sense
    KeyError,  # an unknown word of the sync protocol
)


class AdbLink(Link):
    """A connection through adb-shell.

    Args:
        device: the device's configuration, with ``address`` for the network, or ``serial`` (or neither) for USB.
        patience: how long to wait for the device.
    """

    def __init__(self, device: DeviceConfig, patience: Patience) -> None:
        self.name = device.name
        self.patience = patience
        self.serial, self.key = device.serial, device.key
        # `adb devices` shows a network device's address as its serial number, so users set `serial` to it
        address = device.address or (device.serial if ":" in (device.serial or "") else None)
        self.tcp = None if address is None else _host_and_port(device.name, address)
        self.where = f"{self.tcp[0]}:{self.tcp[1]}" if self.tcp else device.serial or "USB"
        self._device: NoticingAdbDevice | None = None
        self._base = device.folder or BASE
        self._asked = False
        self._has_exec = True
        self._encoder = ""

    @property
    def service(self) -> str:
        return "exec:" if self._has_exec else f"shell: with {self._encoder or '?'} (no exec:)"

    @property
    def is_open(self) -> bool:
        return self._device is not None

    def open(self) -> None:
        self.close()
        key = signer(self.name, self.key)
        with self._errors("cannot be reached"):
            device = NoticingAdbDevice(self._transport(), default_transport_timeout_s=self.patience.answer)
        self._asked = False
        try:
            with self._errors("cannot be reached"):
                device.connect(
                    rsa_keys=[key],
                    transport_timeout_s=self.patience.connect,
                    auth_timeout_s=self.patience.prompt,
                    read_timeout_s=self.patience.answer,
                    auth_callback=self._ask,
                )
        except TransientError as error:
            device.close()
            if self._asked:
                raise AuthorisationError(
                    f"device {self.name}: {self.where} does not trust this computer's adb key, and nobody accepted it "
                    f"within {self.patience.prompt:.0f} s: unlock the device, run again, and accept the question "
                    "about USB debugging on its screen (tick 'always')"
                ) from error
            raise
        except BaseException:
            device.close()
            raise
        self._device = device

    def close(self) -> None:
        if self._device is not None:
            device, self._device = self._device, None
            device.close()

    def shell(self, script: str) -> bytes:
        if self._has_exec:
            try:
                return self._answer("exec", script)
            except ServiceRefusedError:
                self._has_exec = False
        script, mark = framed(script)
        try:
            answer = self._answer("shell", script)
        except ServiceRefusedError as error:
            raise DeviceError(
                f"device {self.name}: the ADB daemon at {self.where} has neither the service exec: nor shell:, and no "
                "command can be run there: see whether the daemon is set up for a shell"
            ) from error
        output, self._encoder = unframed(self.name, answer, mark)
        return output

    def _answer(self, service: str, script: str) -> bytes:
        """What a script prints through a service. A script too long for one message is sent as a file."""
        with self._errors("lost") as timeouts:
            device = self._open_device
            if len(service) + len(script.encode()) + 2 > device.most_bytes:
                path = f"{self._base}/.script-{secrets.token_hex(4)}"
                self._ask_for(service, f"mkdir -p {quote(self._base)}", timeouts)
                device.push(io.BytesIO(script.encode()), path, **timeouts)
                script = f"sh {quote(path)}; rm -f {quote(path)}"
            return self._ask_for(service, script, timeouts)

    def _ask_for(self, service: str, script: str, timeouts: Mapping[str, Any]) -> bytes:
        ask = self._open_device.exec_out if service == "exec" else self._open_device.shell
        return bytes(ask(script, decode=False, **timeouts))

    def send(self, source: Path, path: str) -> None:
        with self._errors("lost") as timeouts:
            self._open_device.push(str(source), path, **timeouts)

    def fetch(self, path: str, target: Path) -> None:
        with self._errors("lost") as timeouts:
            self._open_device.pull(path, str(target), **timeouts)

    def dial(self, port: int) -> Stream:
        with self._errors("lost"):
            device = self._open_device
            try:
                return AdbStream(device, f"tcp:{port}", BROKEN, partial(self._give_up, device), self.patience.answer)
            except ServiceRefusedError as error:
                raise DeviceError(
                    f"device {self.name}: the ADB daemon at {self.where} does not lead to port {port}: has the program "
                    "there ended?"
                ) from error

    def _give_up(self, device: NoticingAdbDevice) -> None:
        """Closes a connection; a newer one stays."""
        if device is self._device:
            self._device = None
        device.close()

    @property
    def _open_device(self) -> NoticingAdbDevice:
        if self._device is None:
            raise ConnectionError("the connection is closed")
        return self._device

    def _transport(self) -> BaseTransport:
        if self.tcp is not None:
            return WholeBufferTcp(*self.tcp)
        return open_usb(self.name, self.serial, self.patience.answer)

    def _ask(self, _: object) -> None:
        self._asked = True
        logger.warning(
            "device %s: accept this computer's adb key on the screen of the device (waiting for %.0f s)",
            self.name,
            self.patience.prompt,
        )

    @contextmanager
    def _errors(self, what: str) -> Iterator[dict[str, Any]]:
        """Hands out the timeouts of one exchange, and turns adb-shell's exceptions into errors with a remedy."""
        try:
            yield {"transport_timeout_s": self.patience.answer, "read_timeout_s": self.patience.answer}
        except REFUSED as error:
            reason = error.args[0] if error.args else ""
            text = bytes(reason).decode(errors="replace") if isinstance(reason, bytes | bytearray) else str(reason)
            raise refusal(self.name, "a file cannot be written or read", text) from error
        except BROKEN as error:
            raise self._fault(getattr(error, "usb_error", None) or error, what) from error

    def _fault(self, cause: Exception, what: str) -> DeviceError:
        """The error for a device that does not answer, or has stopped answering."""
        if what == "lost":
            return TransientError(f"device {self.name}: the connection to {self.where} broke ({cause})")
        if self.tcp is None:
            return usb_fault(self.name, cause)
        return TransientError(
            f"device {self.name}: no ADB daemon answers at {self.where} ({cause}): is it switched on, on this "
            "network, and listening (`adb tcpip 5555` over USB once, or its wireless debugging), and is "
            "device.address right?"
        )


def _host_and_port(name: str, address: str) -> tuple[str, int]:
    _, host, port = split_address(name, address)
    return host, port or PORT


class AdbTransport(RemoteTransport):
    """A device that runs an ADB daemon."""

    def __init__(self, device: DeviceConfig, patience: Patience | None = None) -> None:
        patience = patience or Patience()
        super().__init__(device, AdbLink(device, patience), BASE, patience)
