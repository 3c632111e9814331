from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from autotailor.profiling.host import lock

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
