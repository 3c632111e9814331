"""The transport ``ssh``, for boards with Linux and an SSH server.

asyncssh makes the connection, with the keys, the agent and the configuration that the program ``ssh`` uses.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from concurrent.futures import CancelledError, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import asyncssh

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.errors import AuthorisationError, DeviceError, TransientError
from autotailor.profiling.transports.background import background_loop
from autotailor.profiling.transports.base import Stream, split_address
from autotailor.profiling.transports.remote.link import Link, Patience
from autotailor.profiling.transports.remote.shell import refusal
from autotailor.profiling.transports.remote.transport import RemoteTransport

logging.getLogger("asyncssh").setLevel(logging.WARNING)  # at INFO asyncssh logs every script, hundreds in a run

BASE = ".cache/autotailor"
"""Folder for the files of all runs, relative to the user's home: ``/tmp`` may forbid execution."""
SLOWEST = 200_000
"""Bytes a second; a slower transfer counts as stalled."""
BEATS = 3
"""Unanswered keep-alive messages after which a connection counts as broken."""
GREETING = 1.5
"""Multiple of ``Patience.connect`` within which a server must have greeted; a port that stays silent is no device."""


@dataclass(frozen=True)
class Done:
    """A finished script: its exit code, and what it wrote."""

    code: int
    stdout: bytes
    stderr: bytes


class Peer(asyncssh.SSHClient):
    """How far a login has come.

    Attributes:
        connection: the connection once the other end has accepted it; None before.
    """

    connection: asyncssh.SSHClientConnection | None = None

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self.connection = conn

    @property
    def has_spoken(self) -> bool:
        """Whether an SSH server has sent its version, with which it greets."""
        return self.connection is not None and bool(self.connection.get_extra_info("server_version"))


class SshStream(Stream):
    """A connection through an SSH server."""

    def __init__(self, reader: asyncssh.SSHReader[bytes], writer: asyncssh.SSHWriter[bytes]) -> None:
        self._reader, self._writer = reader, writer
        self._seconds: float | None = None

    def settimeout(self, seconds: float | None) -> None:
        self._seconds = seconds

    def sendall(self, data: bytes) -> None:
        async def send() -> None:
            self._writer.write(data)
            await self._writer.drain()

        self._wait(send())

    def recv(self, most: int) -> bytes:
        return bytes(self._wait(self._reader.read(most)))

    def close(self) -> None:
        background_loop().call_soon_threadsafe(self._writer.close)

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        future = asyncio.run_coroutine_threadsafe(work, background_loop())
        try:
            return future.result(self._seconds)
        except (asyncssh.Error, CancelledError) as error:
            raise ConnectionResetError(str(error) or "the connection is closed") from error
        except BaseException:
            future.cancel()
            raise


class SshLink(Link):
    """A connection through asyncssh.

    Args:
        device: the device's configuration, which must have an ``address``.
        patience: how long to wait for the device.
    """

    def __init__(self, device: DeviceConfig, patience: Patience) -> None:
        if device.address is None:
            raise DeviceError(
                f"device {device.name}: the transport ssh needs an address: set device.address to [user@]host[:port]"
            )
        self.name, self.key = device.name, device.key
        self.patience = patience
        self.user, self.host, self.port = split_address(device.name, device.address)
        self.where = self.host + (f":{self.port}" if self.port else "")
        self.login = (f"{self.user}@" if self.user else "") + self.host
        self._connection: asyncssh.SSHClientConnection | None = None

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    def open(self) -> None:
        self.close()
        with self._errors(f"no SSH server answers at {self.where}", "is it switched on, and is device.address right?"):
            self._connection = self._wait(self._log_in(), 2 * self._longest)  # `_log_in` gives up earlier

    @property
    def _longest(self) -> float:
        """Seconds that an existing server may take to let this user in."""
        return GREETING * self.patience.connect + self.patience.answer

    async def _log_in(self) -> asyncssh.SSHClientConnection:
        """Connects and logs in.

        A missing server is noticed soon; a server that has greeted may take its time, because boards can be slow.

        Raises:
            TimeoutError: nothing answers at the address, or nothing that speaks SSH.
            TransientError: a server answers, but the login does not end.
        """
        peer, brief = Peer(), self.patience.connect
        login: asyncio.Future[asyncssh.SSHClientConnection] = asyncio.ensure_future(_awaited(self._connect(peer)))
        try:
            await asyncio.wait([login], timeout=brief)
            if not login.done() and peer.connection is None:
                raise TimeoutError(f"no connection within {brief:g} s")
            await asyncio.wait([login], timeout=(GREETING - 1) * brief)
            if not login.done() and not peer.has_spoken:
                raise TimeoutError(f"connected, and not greeted within {GREETING * brief:.0f} s")
            await asyncio.wait([login], timeout=self.patience.answer)
            if not login.done():
                raise TransientError(
                    f"device {self.name}: the SSH server at {self.where} answers, but the login did not end within "
                    f"{self._longest:.0f} s: is the board overloaded, or does it wait for a name server (then set "
                    "`UseDNS no` in its sshd_config)?"
                )
            return await login
        finally:
            login.cancel()

    def _connect(self, peer: Peer) -> Any:
        return asyncssh.connect(
            self.host,
            self.port or (),
            username=self.user or (),
            client_keys=[str(Path(self.key).expanduser())] if self.key else (),
            client_factory=lambda: peer,
            connect_timeout=None,  # asyncssh's own timeout would cover the login, too
            login_timeout=0,
            keepalive_interval=self.patience.answer / BEATS,
            keepalive_count_max=BEATS,
        )

    def close(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            background_loop().call_soon_threadsafe(connection.abort)

    def shell(self, script: str) -> bytes:
        return self._run(script, self.patience.answer).stdout

    def send(self, source: Path, path: str) -> None:
        self._transfer(f"cat > {quote(path)}", source.stat().st_size, stdin=source)

    def fetch(self, path: str, target: Path) -> None:
        size = self._run(f"wc -c < {quote(path)}", self.patience.answer).stdout.strip()
        self._transfer(f"cat {quote(path)}", int(size) if size.isdigit() else 0, stdout=target)

    def dial(self, port: int) -> Stream:
        with self._errors(f"the connection to {self.where} broke", "is it still on, and on this network?"):
            if self._connection is None:
                raise ConnectionError("the connection is closed")
            opening = self._connection.open_connection("127.0.0.1", port, encoding=None)
            try:
                return SshStream(*self._wait(_awaited(opening), self.patience.answer))
            except asyncssh.ChannelOpenError as error:
                if error.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED:
                    remedy = "its SSH server forbids it: set `AllowTcpForwarding yes` in the board's sshd_config"
                else:
                    remedy = "has the program there ended?"
                raise DeviceError(
                    f"device {self.name}: port {port} there cannot be reached ({error.reason}): {remedy}"
                ) from error

    def _transfer(self, command: str, size: int, **redirected: Any) -> None:
        done = self._run(command, self.patience.answer + size / SLOWEST, **redirected)
        if done.code != 0:
            raise refusal(self.name, "a file cannot be written or read", done.stderr.decode(errors="replace"))

    def _run(self, script: str, timeout: float, **redirected: Any) -> Done:
        """Runs a script to its end; TransientError where it does not end in time."""
        with self._errors(f"the connection to {self.where} broke", "is it still on, and on this network?"):
            if self._connection is None:
                raise ConnectionError("the connection is closed")
            running = self._connection.run(f"sh -c {quote(script)}", encoding=None, **redirected)
            done = self._wait(_awaited(running), timeout)
            if done.exit_status is None:
                raise ConnectionError("half an answer")
            return Done(done.exit_status, bytes(done.stdout or b""), bytes(done.stderr or b""))

    def _wait(self, work: Coroutine[Any, Any, Any], timeout: float) -> Any:
        future = asyncio.run_coroutine_threadsafe(work, background_loop())
        try:
            if not wait([future], timeout).done:
                raise TimeoutError(f"no answer within {timeout:.0f} s")
            return future.result()
        except BaseException:
            future.cancel()
            raise

    @contextmanager
    def _errors(self, what: str, remedy: str) -> Iterator[None]:
        """Turns asyncssh's exceptions into errors that name a remedy."""
        port = f" -p {self.port}" if self.port else ""
        try:
            yield
        except asyncssh.HostKeyNotVerifiable as error:
            raise AuthorisationError(
                f"device {self.name}: the host key of {self.where} is not in ~/.ssh/known_hosts, or has changed "
                f"({error.reason}): connect once with `ssh{port} {self.login}` and compare the fingerprint it shows "
                "with the board's"
            ) from error
        except asyncssh.PermissionDenied as error:
            raise AuthorisationError(
                f"device {self.name}: {self.where} accepts none of this user's keys ({error.reason}): "
                f"run `ssh-copy-id{port} {self.login}`; a key with a passphrase must be in the agent (`ssh-add`); "
                "another user or key is set in device.address or ~/.ssh/config"
            ) from error
        except (asyncssh.KeyImportError, asyncssh.ConfigParseError, asyncssh.IllegalUserName) as error:
            raise DeviceError(f"device {self.name}: {error}: repair this user's ~/.ssh, or device.key") from error
        except (OSError, asyncssh.Error, TimeoutError, CancelledError) as error:
            said = getattr(error, "reason", None) or str(error) or type(error).__name__
            raise TransientError(f"device {self.name}: {what} ({said}): {remedy}") from error


async def _awaited(what: Any) -> Any:
    return await what


class SshTransport(RemoteTransport):
    """A board that runs an SSH server."""

    def __init__(self, device: DeviceConfig, patience: Patience | None = None) -> None:
        patience = patience or Patience()
        super().__init__(device, SshLink(device, patience), BASE, patience)
