"""Devices for tests: an ADB daemon, an SSH server, and how to reach them."""

import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autotailor.profiling import DeviceConfig
from autotailor.profiling.transports.adb.tcp import user_key
from autotailor.profiling.transports.adb.transport import AdbTransport
from autotailor.profiling.transports.remote.link import Patience
from device.adb_daemon import AdbDaemon
from device.ssh_server import SshServer, find_sshd

IMPATIENT = Patience(connect=4.0, first=4.0, lost=20.0, answer=4.0, prompt=3.0, poll=0.05, pause=0.02)


@pytest.fixture(scope="session")
def adb_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a user's adb key."""
    folder = tmp_path_factory.mktemp("keys") / ".android"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANDROID_USER_HOME", str(folder))
        user_key()
    return folder


@pytest.fixture
def home(tmp_path: Path, adb_keys: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, with an adb key: nothing of the person who runs the tests is read."""
    folder = tmp_path / "home"
    shutil.copytree(adb_keys, folder / ".android")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("ANDROID_USER_HOME", raising=False)
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return folder


@pytest.fixture
def phone(tmp_path: Path, home: Path) -> Iterator[AdbDaemon]:
    """A phone that accepts everybody's key at once."""
    with AdbDaemon(tmp_path / "phone") as daemon:
        yield daemon


@pytest.fixture
def adb(phone: AdbDaemon) -> Iterator[AdbTransport]:
    """The transport to it."""
    with connect(phone) as transport:
        yield transport


@pytest.fixture
def board(tmp_path: Path, home: Path) -> Iterator[SshServer]:
    """A board that this user may log in to."""
    server = ssh_server(tmp_path, home)
    yield server
    server.stop()


def ssh_server(tmp_path: Path, home: Path, machine: str | None = None) -> SshServer:
    """A server that is to be stopped; the test is skipped where the program is missing."""
    program = find_sshd()
    if program is None:
        pytest.skip("the OpenSSH server is missing: apt-get install openssh-server")
    return SshServer(program, tmp_path / "sshd", home, machine)


def connect(daemon: AdbDaemon, patience: Patience = IMPATIENT) -> AdbTransport:
    """Another transport to a phone."""
    return AdbTransport(DeviceConfig(name="phone", transport="adb", address=daemon.address, threads=2), patience)


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    """What was said to the user so far."""
    caplog.set_level(logging.WARNING)
    return lambda: caplog.text
