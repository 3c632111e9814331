"""``autotailor runtime serve`` on this computer: a server that ends with the command, and what it complains of."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from autotailor.__main__ import main
from autotailor.project import places
from autotailor.serving import Client, library
from autotailor.serving.files import INDEX, Index
from pools import TinyPool, tiny_pool
from served import serve_binary


@pytest.fixture
def pool(tmp_path: Path) -> TinyPool:
    serve_binary()
    return tiny_pool(tmp_path / "pool")


@contextmanager
def serving(pool: TinyPool, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command as a process, and the address that it says."""
    command = [sys.executable, "-m", "autotailor", "runtime", "serve", str(pool.folder), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(f"serving 3 members of {pool.folder} at "), line
        yield process, line.partition(" at ")[2].partition(";")[0]


def gone(path: Path) -> bool:
    """Whether a server's socket is removed within some seconds."""
    for _ in range(500):
        if not path.exists():
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_order(pool: TinyPool, tmp_path: Path, number: signal.Signals) -> None:
    with serving(pool, "--listen", str(tmp_path / "s")) as (process, _):
        process.send_signal(number)
        assert process.communicate(timeout=20) == ("stopped\n", "")
        assert process.returncode == 0
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_order_while_the_pool_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    pool, server = tiny_pool(tmp_path / "pool"), tmp_path / "server"
    server.write_text(f"#!/bin/sh\nkill -{number.value} $$\n")
    server.chmod(0o755)
    monkeypatch.setattr(library, "built", lambda name: server)
    assert main(["runtime", "serve", str(pool.folder), "--listen", str(tmp_path / "s")]) == 0
    assert capsys.readouterr() == ("stopped\n", "")


def test_no_server_is_left_where_the_command_is_killed(pool: TinyPool, tmp_path: Path) -> None:
    with serving(pool, "--listen", str(tmp_path / "s")) as (process, _):
        (server,) = psutil.Process(process.pid).children()
        process.kill()
        assert server.wait(10) in (0, None)
    assert gone(tmp_path / "s")


def test_over_tcp_it_says_the_port_that_it_got(pool: TinyPool) -> None:
    with serving(pool, "--listen", "tcp:0", "--deadline-ms", "7", "--rate", "3") as (process, address):
        with Client(address) as client:
            settings = client.status()["settings"]
        process.terminate()
    assert (settings["deadline_ms"], settings["rate"], settings["quantile"]) == (7.0, 3.0, 0.95)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--deadline-ms", "-1"], "policy: deadline_ms is -1, expected a positive number of milliseconds"),
        (["--quantile", "2"], "policy: quantile is 2"),
        (["--cores", "999"], "--cores 999: core 999 does not exist here or may not be used; "),
        (["--cores", "x"], "--cores x: expected numbers of cores"),
    ],
)
def test_what_the_server_refuses_is_the_error_of_the_command(
    pool: TinyPool, tmp_path: Path, words: Sequence[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGTERM), os.sched_getaffinity(0)
    assert main(["runtime", "serve", str(pool.folder), "--listen", str(tmp_path / "s"), *words]) == 1
    assert f"autotailor: {message}" in capsys.readouterr().err
    assert before == (signal.getsignal(signal.SIGTERM), os.sched_getaffinity(0))


def test_an_address_that_is_taken_is_told(pool: TinyPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(str(tmp_path / "s"))
        other.listen()
        assert main(["runtime", "serve", str(pool.folder), "--listen", str(tmp_path / "s")]) == 1
    assert "another server listens there: stop it, or choose another path" in capsys.readouterr().err


def test_cores_of_the_measurements_that_are_missing_here_are_told(pool: TinyPool, tmp_path: Path) -> None:
    index = Index.parse((pool.folder / INDEX).read_bytes())
    (pool.folder / INDEX).write_text(replace(index, cores=(1000,)).text(), encoding="utf-8")
    with serving(pool, "--listen", str(tmp_path / "s")) as (process, _):
        process.terminate()
        assert "cores 1000 do not exist here or may not be used" in process.communicate(timeout=20)[1]


def test_where_the_server_was_not_built_the_command_that_builds_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = tiny_pool(tmp_path / "pool")
    monkeypatch.setattr(places, "runner_builds", lambda: tmp_path)
    assert main(["runtime", "serve", str(pool.folder), "--listen", str(tmp_path / "s")]) == 1
    said = capsys.readouterr().err
    assert "autotailor-serve, which runs pools on this computer, is missing at" in said
    assert "build it with: make serve TARGETS=host" in said
