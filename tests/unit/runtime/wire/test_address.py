"""Addresses: what may be named, and files that stand in the way."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from autotailor.runtime import PoolError
from autotailor.runtime.wire import Address
from wire_services import served


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


def test_a_socket_is_its_owners_and_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with served(path):
        assert path.stat().st_mode & 0o777 == 0o600
    assert not path.exists()


def test_a_socket_that_a_killed_server_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    assert path.is_socket()
    with served(path) as (server, _):
        server.address.connect(1).close()


def test_a_server_whose_socket_was_removed_leaves_that_of_its_successor(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with served(path):
        path.unlink()
        successor, _ = Address(path).listen()
    with successor:
        assert path.is_socket()


def test_another_server_and_another_file_are_left_alone(tmp_path: Path) -> None:
    with served(tmp_path / "s") as (server, _):
        with pytest.raises(PoolError, match="another server listens"):
            server.address.listen()
        server.address.connect(1).close()
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
