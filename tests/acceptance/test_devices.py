"""The whole pipeline with a device that is not this computer: a phone over ADB (aarch64, under QEMU), a board over SSH.

Against a phone that misbehaves the pipeline ends as well, or says why it does not and goes on when it is well again; no
operator is measured twice.
"""

import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from acceptance.pipeline import assert_finished, pipeline, visits
from autotailor.profiling.transports.adb.tcp import user_key
from device.adb_daemon import AdbDaemon
from device.runners import built
from device.ssh_server import SshServer, find_sshd

pytestmark = [pytest.mark.sweep, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of its own, with an adb key."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        patch.delenv("ANDROID_USER_HOME", raising=False)
        user_key()
    return folder


@pytest.fixture(scope="module")
def port() -> int:
    """One that is free: each phone listens at it, so that the configuration stays the same."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, home: Path, port: int) -> Path:
    """Where the pipeline has ended with a phone that behaves."""
    built("aarch64")
    directory = tmp_path_factory.mktemp("android")
    with AdbDaemon(tmp_path_factory.mktemp("phone"), machine="aarch64", port=port):
        done = pipeline(directory, home, "android", [f"device.address=127.0.0.1:{port}"])
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return directory


@pytest.fixture
def trained(finished: Path, tmp_path: Path) -> Path:
    """The same, before anything was asked of the phone."""
    copy = tmp_path / "run"
    shutil.copytree(finished, copy, ignore=shutil.ignore_patterns("android", "luts", ".snakemake", ".tracking"))
    return copy


@pytest.fixture
def phone(tmp_path: Path, port: int) -> Iterator[AdbDaemon]:
    with AdbDaemon(tmp_path / "phone", machine="aarch64", port=port) as daemon:
        yield daemon


def test_android(finished: Path) -> None:
    assert_finished(finished, "android")


@pytest.mark.parametrize(
    ("kind", "after", "times", "seconds"),
    [
        ("refuse", 1, 3, 0),
        ("drop", 40, 5, 0),
        ("stall", 60, 2, 20),
        ("corrupt", 40, 5, 0),
        ("cut", 15, 5, 0),
        ("damage", 1, 2, 0),
    ],
)
def test_a_phone_that_misbehaves(
    finished: Path, trained: Path, home: Path, phone: AdbDaemon, kind: str, after: int, times: int, seconds: float
) -> None:
    phone.faults.plan(kind, after, times, seconds)
    done = pipeline(trained, home, "android", [f"device.address={phone.address}"])
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert phone.faults.happened[kind] == times
    assert_finished(trained, "android")
    assert visits(trained) == visits(finished)


def when_measured(directory: Path, action: Callable[[], object]) -> threading.Thread:
    """Does something once, as soon as the first measurements are in the store."""

    def watch() -> None:
        while not ((directory / "luts").exists() and list((directory / "luts").glob("*.sqlite")) and visits(directory)):
            time.sleep(0.1)
        action()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def test_a_phone_that_restarts(finished: Path, trained: Path, home: Path, phone: AdbDaemon) -> None:
    watching = when_measured(trained, lambda: phone.reboot(8))
    done = pipeline(trained, home, "android", [f"device.address={phone.address}"])
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert not watching.is_alive()
    assert_finished(trained, "android")
    assert visits(trained) == visits(finished)


def test_a_phone_that_is_full(finished: Path, trained: Path, home: Path, phone: AdbDaemon) -> None:
    phone.faults.plan("full", times=999)
    done = pipeline(trained, home, "android", [f"device.address={phone.address}"])
    assert done.returncode != 0
    assert "no space is left on the device: remove something" in done.stdout + done.stderr
    phone.faults.plan("full", times=0)
    done = pipeline(trained, home, "android", [f"device.address={phone.address}"])
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert_finished(trained, "android")
    assert visits(trained) == visits(finished)


def test_a_phone_that_does_not_know_this_computer(tmp_path: Path, home: Path, port: int) -> None:
    (tmp_path / "run").mkdir()
    with AdbDaemon(tmp_path / "phone", prompt=None, machine="aarch64", port=port) as daemon:
        done = pipeline(tmp_path / "run", home, "android", [f"device.address={daemon.address}"])
    assert done.returncode != 0
    assert "accept" in done.stderr
    assert not (tmp_path / "run" / "results").exists()


def test_no_phone(tmp_path: Path, home: Path, port: int) -> None:
    start = time.monotonic()
    done = pipeline(tmp_path, home, "android", [f"device.address=127.0.0.1:{port}"])
    seconds = time.monotonic() - start
    assert done.returncode != 0
    assert f"no ADB daemon answers at 127.0.0.1:{port}" in done.stderr
    assert seconds < 60  # 15 are promised: 4 for the phone, the rest is starting Snakemake, longer on a busy machine
    assert not (tmp_path / "results").exists()


def test_orin(tmp_path: Path, finished: Path) -> None:
    if (program := find_sshd()) is None:
        pytest.fail("the OpenSSH server is missing: apt-get install openssh-server")
    built("host")
    home, run = tmp_path / "home", tmp_path / "run"
    home.mkdir()
    shutil.copytree(finished, run, ignore=shutil.ignore_patterns("android", "luts", ".snakemake", ".tracking"))
    server = SshServer(program, tmp_path / "sshd", home)
    dropping = when_measured(run, server.drop)
    try:
        where = [f"device.address={server.address}", f"device.folder={tmp_path / 'board'}", "device.precision=fp32"]
        done = pipeline(run, home, "orin", where)
    finally:
        server.stop()
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert not dropping.is_alive()
    assert_finished(run, "orin")
    assert visits(run) == visits(finished)
