import logging
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.host import lock
from autotailor.profiling.host.lock import DeviceLock, held
from autotailor.profiling.transports import LocalTransport

HOLD = """
import logging, sys, time
from autotailor.profiling.host.lock import DeviceLock
held = DeviceLock(sys.argv[1], "phone")
held.acquire()
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own folder of locks."""
    monkeypatch.setattr(lock, "SHARED", tmp_path)
    return tmp_path


class Murderer(logging.Handler):
    """Kills a process as soon as something is said, and keeps what was said."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self.pid, self.said = pid, ""

    def emit(self, record: logging.LogRecord) -> None:
        self.said += record.getMessage()
        os.kill(self.pid, signal.SIGKILL)


def test_the_second_waits_and_says_for_whom_until_a_crash_frees_the_device(tmp_path: Path) -> None:
    """Also where the first one's temporary files lie in a folder of its own, as those of a job of a cluster do."""
    identity = f"adb-{os.getpid()}-{tmp_path.name}"
    command = [sys.executable, "-c", HOLD, identity]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        handler = Murderer(holder.pid)
        lock.logger.addHandler(handler)
        with lock.DeviceLock(identity, "phone"):
            assert holder.wait(10) == -signal.SIGKILL
        lock.logger.removeHandler(handler)
    assert handler.said.count("device phone is in use by") == 1
    assert f"process {holder.pid} of " in handler.said
    assert ", since " in handler.said


def test_other_devices_are_free(folder: Path) -> None:
    with lock.DeviceLock("adb-A1", "phone"), lock.DeviceLock("adb-B2", "another phone"):
        pass


def test_who_holds_it_is_known_only_while_it_is_held(folder: Path) -> None:
    held = lock.DeviceLock("ssh-board.local:22", "board")
    with held:
        holder = held.holder()
        assert holder is not None
        assert holder.pid == os.getpid()
    assert held.holder() is None
    held.release()


class Board(LocalTransport):
    """This computer under another identity, whose folder another run may use."""

    user: str | None = None

    @property
    def identity(self) -> str:
        return "local-holding-test"

    def claim(self) -> str | None:
        return self.user


@pytest.fixture
def board() -> Board:
    return Board(DeviceConfig("board"))


def is_free(identity: str) -> bool:
    """Whether another process could take a device."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return not pool.apply(_is_held, (identity,))


def _is_held(identity: str) -> bool:
    return DeviceLock(identity, "board").is_held()


def test_a_device_is_held_while_the_block_runs_and_its_folder_is_removed(board: Board) -> None:
    with held(board, "board") as user:
        assert user is None
        assert not is_free(board.identity)
        folder = board.folder
        assert folder.is_dir()
    assert is_free(board.identity)
    assert not folder.exists()


def test_a_device_that_this_computer_uses_is_named_and_left_alone(board: Board, tmp_path: Path) -> None:
    lock = DeviceLock(board.identity, "board")
    lock.acquire()
    folder = board.folder
    with held(board, "board") as user:
        assert user is not None
        assert user.startswith("process ")
    assert not is_free(board.identity)
    assert folder.is_dir()
    lock.release()
    board.cleanup()


def test_a_device_that_another_computer_uses_is_given_back(board: Board) -> None:
    board.user = "another computer (tablet)"
    with held(board, "board") as user:
        assert user == "another computer (tablet)"
    assert is_free(board.identity)


def test_an_error_in_the_block_gives_the_device_back(board: Board) -> None:
    with pytest.raises(ZeroDivisionError), held(board, "board"):
        raise ZeroDivisionError
    assert is_free(board.identity)
