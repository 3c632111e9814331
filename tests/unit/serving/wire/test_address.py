"""Addresses: what may be named, and files that stand in the way."""

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from autotailor.serving import PoolError
from autotailor.serving.wire import Address, Client, Relay, address
from autotailor.serving.wire.address import claimed

HOLD = """
import pathlib, sys
from autotailor.serving.wire.address import claimed
with claimed(pathlib.Path(sys.argv[1])):
    print("claimed", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("unix:/tmp/a", Address(Path("/tmp/a"))),
        ("pool.sock", Address(Path("pool.sock"))),
        ("tcp:80", Address(port=80)),
    ],
)
def test_an_address_is_a_path_or_a_port(text: str, expected: Address) -> None:
    assert Address.parse(text) == expected
    assert Address.parse(str(expected)) == expected


@pytest.mark.parametrize("text", ["", "unix:", "tcp:", "tcp:65536", "tcp:0.0.0.0:80", "tcp:-1", "x" * 108, "a\0b"])
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(PoolError, match="address"):
        Address.parse(text)


@contextlib.contextmanager
def served(path: Path) -> Iterator[Address]:
    """Where something listens."""
    listening, address = Address(path).listen()
    with listening:
        yield address
        address.release()


def test_a_socket_is_its_owners_and_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with served(path):
        assert path.stat().st_mode & 0o777 == 0o600
    assert not path.exists()


def test_a_socket_that_a_killed_server_left_is_replaced(tmp_path: Path) -> None:
    path = stale(tmp_path / "s")
    with served(path) as address:
        address.connect(1).close()


def test_a_server_whose_socket_was_removed_leaves_that_of_its_successor(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with served(path):
        path.unlink()
        successor, _ = Address(path).listen()
    with successor:
        assert path.is_socket()


def stale(path: Path) -> Path:
    """A socket that a killed server has left."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    return path


def test_of_servers_that_find_one_stale_socket_at_the_same_moment_one_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, unlink, all_are_there = stale(tmp_path / "s"), Path.unlink, threading.Barrier(4)
    listening, refused = [], []

    def slow(self: Path, missing_ok: bool = False) -> None:
        time.sleep(0.1)  # each server has found the socket stale, before the first one removes it
        unlink(self, missing_ok=missing_ok)

    def start() -> None:
        all_are_there.wait()
        try:
            listening.append(Address(path).listen())
        except PoolError as error:
            refused.append(str(error))

    monkeypatch.setattr(Path, "unlink", slow)
    threads = [threading.Thread(target=start) for _ in range(all_are_there.parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ((made, address),) = listening
    with made:
        assert len(refused) == all_are_there.parties - 1
        assert all("another server listens there; stop it, or choose another path" in each for each in refused)
        address.connect(1).close()
        address.release()
    assert list(tmp_path.iterdir()) == []


RACE = """
import pathlib, sys
from autotailor.serving import PoolError
from autotailor.serving.wire import Address, Client, Relay
print("ready", flush=True)
sys.stdin.readline()
try:
    listening, address = Address(pathlib.Path(sys.argv[1])).listen()
    print("serves", flush=True)
except PoolError as error:
    print(error, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("turn", range(3))
def test_of_processes_that_start_at_once_one_listens(tmp_path: Path, turn: int) -> None:
    path = stale(tmp_path / "s")
    command = [sys.executable, "-c", RACE, str(path)]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) for _ in range(4)
    ]
    streams = [(each.stdin, each.stdout) for each in started if each.stdin and each.stdout]
    assert [said.readline() for _, said in streams] == ["ready\n"] * len(started)
    for told, _ in streams:
        told.write("\n")
    found = sorted(said.readline().strip() for _, said in streams)
    Address(path).connect(1).close()
    for process in started:
        process.communicate(timeout=60)
    refusal = f"unix:{path}: another server listens there; stop it, or choose another path"
    assert found == ["serves", *[refusal] * (len(started) - 1)] or found == [*[refusal] * (len(started) - 1), "serves"]


def test_a_server_that_is_too_busy_to_accept_keeps_its_socket(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as busy, contextlib.ExitStack() as waiting:
        busy.bind(str(path))
        busy.listen(0)
        for _ in range(3):  # until no further connection is taken
            client = waiting.enter_context(socket.socket(socket.AF_UNIX))
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                client.connect(str(path))
        with pytest.raises(PoolError, match="another server listens there"):
            Address(path).listen()
        assert path.is_socket()


def test_a_relay_that_is_closed_twice_leaves_the_socket_of_its_successor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s"
    with Relay(Address(path), lambda: Client(str(path)), 4096) as relay:
        relay.close()
        successor, _ = Address(path).listen()
        found = replace(relay.address, inode=path.stat().st_ino)  # file systems give numbers again
        monkeypatch.setattr(relay, "address", found)
    with successor:
        assert path.is_socket()


def test_another_server_and_another_file_are_left_alone(tmp_path: Path) -> None:
    with served(tmp_path / "s") as address:
        with pytest.raises(PoolError, match="another server listens"):
            address.listen()
        address.connect(1).close()
    (tmp_path / "f").write_text("kept")
    with pytest.raises(PoolError, match="is no socket"):
        Address(tmp_path / "f").listen()
    assert (tmp_path / "f").read_text() == "kept"
    with pytest.raises(PoolError, match="cannot listen"):
        Address(tmp_path / "missing" / "s").listen()


def test_tcp_listens_on_loopback_alone() -> None:
    listening, address = Address().listen()
    with listening:
        assert listening.getsockname() == ("127.0.0.1", address.port)


def test_one_at_a_time_has_the_claim_and_no_file_stays(tmp_path: Path) -> None:
    path, running, most = tmp_path / "s", [0], [0]

    def work() -> None:
        for _ in range(50):
            with claimed(path):
                running[0] += 1
                most[0] = max(most[0], running[0])
                tmp_path.stat()  # lets the other threads run
                running[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, running) == ([1], [0])
    assert list(tmp_path.iterdir()) == []


def test_a_claim_that_is_held_for_long_is_told_and_that_of_a_killed_process_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s"
    monkeypatch.setattr(address, "PATIENCE_S", 0.1)
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "claimed\n"
        said = rf"unix:{path}: another server has begun or ended there for 0\.1 s"
        with pytest.raises(PoolError, match=said), claimed(path):
            raise AssertionError("two processes have the claim")
        other.kill()
        other.wait()
    with claimed(path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_the_place_of_the_locked_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / f"s{address.SUFFIX}").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic links"), claimed(tmp_path / "s"):
        raise AssertionError("a link was followed")
    assert not (tmp_path / "precious").exists()
