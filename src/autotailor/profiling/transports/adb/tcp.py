"""A TCP transport for adb-shell that sends whole buffers at once and notices a closed peer."""

import os
import socket
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path

from adb_shell.auth.keygen import keygen, write_public_keyfile
from adb_shell.auth.sign_cryptography import CryptographySigner
from adb_shell.exceptions import TcpTimeoutException
from adb_shell.transport.base_transport import BaseTransport

from autotailor.profiling.errors import DeviceError
from autotailor.profiling.transports.background import in_thread


class WholeBufferTcp(BaseTransport):  # type: ignore[misc]
    """A TCP transport without three faults of adb-shell's own.

    This transport sends without delay (a push is 400 times faster), writes whole buffers, and does not spin on a closed
    connection.

    Args:
        host: the device's name or address.
        port: the daemon's port.
    """

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._socket: socket.socket | None = None

    def connect(self, transport_timeout_s: float | None) -> None:
        """Connects; raises OSError."""
        connecting = in_thread(partial(socket.create_connection, self._address, timeout=transport_timeout_s))
        self._socket = connecting.result(transport_timeout_s)  # looking up the host's name has no timeout of its own
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        """Closes the connection; safe to call twice."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def bulk_read(self, numbytes: int, transport_timeout_s: float | None) -> bytes:
        """Reads at least one byte; raises ConnectionError where the device has closed the connection, or a timeout."""
        connection = self._connection(transport_timeout_s)
        try:
            data = connection.recv(numbytes)
        except TimeoutError as error:
            raise TcpTimeoutException(f"no answer within {transport_timeout_s} s") from error
        if not data:
            raise ConnectionResetError("the device closed the connection")
        return data

    def bulk_write(self, data: bytes, transport_timeout_s: float | None) -> int:
        """Sends all bytes; raises TcpTimeoutException where the device stops reading."""
        try:
            self._connection(transport_timeout_s).sendall(data)
        except TimeoutError as error:
            raise TcpTimeoutException(f"nothing could be sent within {transport_timeout_s} s") from error
        return len(data)

    def _connection(self, timeout: float | None) -> socket.socket:
        if self._socket is None:
            raise ConnectionResetError("the connection is closed")
        self._socket.settimeout(timeout)
        return self._socket


def user_key() -> Path:
    """The file of this user's private key. A missing key is made, with the public key in a file beside it."""
    folder = Path(os.environ.get("ANDROID_USER_HOME") or Path.home() / ".android")
    key = folder / "adbkey"
    if not key.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            made = Path(scratch) / "adbkey"
            keygen(str(made))
            made.chmod(0o600)
            with suppress(FileExistsError):  # where another process was faster, that process's key is used
                os.link(made, key)
    public = key.with_suffix(".pub")
    if not public.exists():
        write_public_keyfile(str(key), str(public))
    return key


def signer(name: str, key: str | None = None) -> CryptographySigner:
    """The signer that answers a device's challenge with this user's key.

    Args:
        name: the device's name, for messages.
        key: the private key's file, with the public key in a file beside it; None for the user's own key.

    Raises:
        DeviceError: the key cannot be read or made.
    """
    try:
        return CryptographySigner(str(Path(key).expanduser() if key else user_key()))
    except (OSError, ValueError, TypeError) as error:
        if key:
            raise DeviceError(
                f"device {name}: device.key is {key}, expected an adb key with its public key in {key}.pub ({error}): "
                f"make one with `adb keygen {key}`, or set device.key to null for the user's own"
            ) from error
        raise DeviceError(
            f"device {name}: the adb key of this user cannot be read or made ({error}): repair or remove "
            "~/.android/adbkey; where the key is missing, a new one is made and the device asks a person to accept it"
        ) from error
