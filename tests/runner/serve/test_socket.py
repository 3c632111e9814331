"""The server's Unix socket: its owner's, one server's at a time, and no obstacle after a crash."""

import contextlib
import fcntl
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pools import SIDES, TinyPool, tiny_pool
from served import Client, Serving, refusal

LARGEST = max(SIDES)
IMAGE = np.random.default_rng(5).normal(size=(3, LARGEST, LARGEST)).astype(np.float32)
NAME = f"member_{len(SIDES) - 1:02}"
OPTIONS = ("--deadline-ms", "1000", "--pin", NAME)


@pytest.fixture
def pool(tmp_path: Path) -> TinyPool:
    return tiny_pool(tmp_path / "pool")


@pytest.fixture
def stale() -> Iterator[Path]:
    """A socket with a short path that a killed server has left."""
    with tempfile.TemporaryDirectory(prefix="serve-") as folder:
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(f"{folder}/s")
        yield Path(folder) / "s"


def assert_alive(client: Client, pool: TinyPool) -> None:
    with client:
        np.testing.assert_allclose(client.infer(IMAGE).outputs, pool.logits(NAME, IMAGE), atol=1e-4)


@pytest.mark.parametrize("turn", range(5))
def test_of_servers_that_start_at_once_on_a_stale_socket_one_serves(
    command: tuple[str, ...], pool: TinyPool, stale: Path, turn: int
) -> None:
    words = [*command, str(pool.folder), "--socket", str(stale), *OPTIONS]
    started = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(5)]
    said = [each.stdout.readline() for each in started if each.stdout]
    serving = [each for each, line in zip(started, said, strict=True) if line]
    assert len(serving) == 1, said
    assert_alive(Client(stale), pool)
    serving[0].terminate()
    ended = [(each.communicate(timeout=60)[1], each.returncode) for each in started if each is not serving[0]]
    refused = f"autotailor-serve: {stale}: another server listens there: stop it, or choose another path\n"
    assert ended == [(refused, 1)] * (len(started) - 1)
    serving[0].communicate(timeout=60)
    assert serving[0].returncode == 0
    assert list(stale.parent.iterdir()) == []


def test_a_server_waits_for_one_that_begins_at_its_path(command: tuple[str, ...], pool: TinyPool, stale: Path) -> None:
    """The test is the other server, in Python; both claim the path by locking the same file."""
    number = stale.stat().st_ino
    with Path(f"{stale}.lock").open("w") as stream, socket.socket(socket.AF_UNIX) as other:
        fcntl.flock(stream, fcntl.LOCK_EX)
        words = [*command, str(pool.folder), "--socket", str(stale), *OPTIONS]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(1.0)  # the server has found the socket stale; one that is slower finds that of the test
            assert stale.stat().st_ino == number, "the server has removed a socket that it may not remove yet"
            stale.unlink()
            other.bind(str(stale))
            other.listen()
            fcntl.flock(stream, fcntl.LOCK_UN)
            said = process.communicate(timeout=60)[1]
        assert process.returncode == 1
        assert "another server listens there" in said or "another server has begun" in said
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(stale))


def test_a_claim_that_is_held_for_long_is_told(command: tuple[str, ...], pool: TinyPool, stale: Path) -> None:
    claimed = Path(f"{stale}.lock")
    with claimed.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        said = refusal(command, str(pool.folder), "--socket", str(stale))
    assert f"{stale}: another server has begun or ended there for 5 s, and holds {claimed}: end it" in said
    assert stale.is_socket()


def test_a_server_that_is_too_busy_to_accept_keeps_its_socket(
    command: tuple[str, ...], pool: TinyPool, stale: Path
) -> None:
    stale.unlink()
    with socket.socket(socket.AF_UNIX) as busy, contextlib.ExitStack() as waiting:
        busy.bind(str(stale))
        busy.listen(0)
        for _ in range(3):  # until no further connection is taken
            client = waiting.enter_context(socket.socket(socket.AF_UNIX))
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                client.connect(str(stale))
        assert "another server listens there" in refusal(command, str(pool.folder), "--socket", str(stale))
        assert stale.is_socket()


def test_a_server_whose_socket_was_removed_leaves_that_of_its_successor(
    command: tuple[str, ...], pool: TinyPool, stale: Path
) -> None:
    options = ("--socket", str(stale), *OPTIONS)
    with Serving(command, pool.folder, *options) as first:
        stale.unlink()
        with Serving(command, pool.folder, *options):
            first.process.terminate()
            assert first.process.wait(60) == 0
            assert_alive(Client(stale), pool)


def test_the_socket_is_its_owners(command: tuple[str, ...], pool: TinyPool) -> None:
    with Serving(command, pool.folder, *OPTIONS) as server:
        assert server.path.stat().st_mode & 0o777 == 0o600


def test_a_second_server_at_the_same_address_is_refused(command: tuple[str, ...], pool: TinyPool) -> None:
    with Serving(command, pool.folder, *OPTIONS) as server:
        done = subprocess.run([*command, str(pool.folder)], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 1
        assert "another server listens" in done.stderr
        assert_alive(server.client(), pool)


def test_a_file_in_the_sockets_place_is_kept(command: tuple[str, ...], pool: TinyPool) -> None:
    (pool.folder / "serve.sock").write_text("mine")
    done = subprocess.run([*command, str(pool.folder)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "exists and is no socket" in done.stderr
    assert (pool.folder / "serve.sock").read_text() == "mine"
