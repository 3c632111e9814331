from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from autotailor.profiling.lock import DeviceLock

HOLD = """
import logging, sys, time
from autotailor.profiling.lock import DeviceLock
DeviceLock(sys.argv[1], "phone").acquire()
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_the_second_waits_and_says_for_whom_until_a_crash_frees_the_device(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    command = [sys.executable, "-c", HOLD, "adb-A1"]
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        threading.Timer(0.5, os.kill, (holder.pid, signal.SIGKILL)).start()
        with DeviceLock("adb-A1", "phone"):
            assert holder.wait(10) == -signal.SIGKILL
    said = caplog.text
    assert said.count("device phone is in use by") == 1
    assert f"process {holder.pid} of " in said
    assert ", since " in said


def test_other_devices_are_free(folder: Path) -> None:
    with DeviceLock("adb-A1", "phone"), DeviceLock("adb-B2", "another phone"):
        pass


def test_who_holds_it_is_known_only_while_it_is_held(folder: Path) -> None:
    lock = DeviceLock("ssh-board.local:22", "board")
    with lock:
        holder = lock.holder()
        assert holder is not None
        assert holder.pid == os.getpid()
    assert lock.holder() is None
    lock.release()
