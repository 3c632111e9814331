"""How long a board is waited for: soon nothing is there, but a board that is there may be slow."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncssh
import pytest

from autotailor.profiling import DeviceConfig
from autotailor.profiling.errors import TransientError, UnreachableError
from autotailor.profiling.transports.remote.link import Patience
from autotailor.profiling.transports.ssh import GREETING, SshLink, SshTransport

PROMISED = 15.0
"""Seconds after which an absent device has been reported."""


class Slow(asyncssh.SSHServer):
    """Lets everybody in, late.

    Args:
        delay: of the login, in seconds.
    """

    def __init__(self, delay: float) -> None:
        self._delay = delay

    async def begin_auth(self, username: str) -> bool:
        await asyncio.sleep(self._delay)
        return False


@pytest.fixture
def port() -> Iterator[socket.socket]:
    """A port that accepts connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@pytest.fixture
def serve(port: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Starts an SSH server at the port, whose key this user knows."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    key = asyncssh.generate_private_key("ssh-ed25519")
    known = f"[127.0.0.1]:{port.getsockname()[1]} {key.export_public_key().decode()}"
    (tmp_path / ".ssh").mkdir(mode=0o700)
    (tmp_path / ".ssh" / "known_hosts").write_text(known)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def work(silence: float, delay: float) -> None:
        await asyncio.sleep(silence)
        await asyncssh.listen(sock=port, server_host_keys=[key], server_factory=lambda: Slow(delay))

    def serve(silence: float = 0.0, delay: float = 0.0) -> None:
        asyncio.run_coroutine_threadsafe(work(silence, delay), loop)

    yield serve
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.run_until_complete(_end_tasks())
    loop.close()


async def _end_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def configured(port: socket.socket) -> DeviceConfig:
    return DeviceConfig(name="board", transport="ssh", address=f"somebody@127.0.0.1:{port.getsockname()[1]}")


def test_an_absent_device_is_reported_in_time() -> None:
    """The last attempt begins before the patience has ended, and ends at the latest when no greeting has come."""
    assert Patience().first + GREETING * Patience().connect < PROMISED


def test_a_port_that_says_nothing_is_reported(port: socket.socket) -> None:
    words = r"no SSH server answers at 127.* \(connected, and not greeted within 5 s\).*tried \d+ times in \d+ s"
    with SshTransport(configured(port)) as transport, pytest.raises(UnreachableError, match=words):
        transport.check()


def test_a_host_that_does_not_accept_is_reported(port: socket.socket) -> None:
    port.listen(0)
    address = port.getsockname()
    full = [socket.socket() for _ in range(4)]  # the kernel drops further connections without a word
    for client in full:
        client.setblocking(False)
        client.connect_ex(address)
    patience = Patience(connect=0.5, first=2.0)
    words = r"\(no connection within 0\.5 s\): is it switched on.*tried \d times in \d+ s"
    with SshTransport(configured(port), patience) as transport, pytest.raises(UnreachableError, match=words):
        transport.check()
    for client in full:
        client.close()


def test_a_slow_login_succeeds(port: socket.socket, serve: Callable[..., None]) -> None:
    serve(delay=6.0)
    link = SshLink(configured(port), Patience())
    started = time.monotonic()
    link.open()
    assert link.is_open
    assert time.monotonic() - started > 6
    link.close()


def test_a_late_greeting_succeeds(port: socket.socket, serve: Callable[..., None]) -> None:
    serve(silence=2.3)
    link = SshLink(configured(port), Patience(connect=2.0))
    link.open()
    assert link.is_open
    link.close()


def test_a_server_that_lets_nobody_in(port: socket.socket, serve: Callable[..., None]) -> None:
    serve(delay=60.0)
    link = SshLink(configured(port), Patience(connect=0.5, answer=1.0))
    with pytest.raises(TransientError, match=r"at 127.* answers, but the login did not end within 2 s.*UseDNS"):
        link.open()


def test_a_timeout_within_keeps_its_words(port: socket.socket) -> None:
    async def fail() -> None:
        raise TimeoutError("its own")

    link = SshLink(configured(port), Patience())
    with pytest.raises(TimeoutError, match=r"^its own$"):
        link._wait(fail(), 10)
    with pytest.raises(TimeoutError, match=r"no answer within \d+ s"):
        link._wait(asyncio.sleep(60), 0.2)
