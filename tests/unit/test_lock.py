"""A lock names its holder, and is free once the holder's process has ended for any reason."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from autotailor.lock import Lock

HOLD = """
import pathlib, sys
from autotailor.lock import Lock
lock = Lock(pathlib.Path(sys.argv[1]))
print(lock.take(), flush=True)
sys.stdin.read()
"""


def test_a_lock_names_its_holder_until_a_killed_holder_frees_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path / "a.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        lock = Lock(tmp_path / "a.lock")
        assert not lock.take()
        assert str(lock.holder()).startswith(f"process {other.pid} of ")
        other.kill()
        other.wait()
        assert lock.take()
    holder = lock.holder()
    assert holder is not None
    assert holder.pid == os.getpid()
    lock.release()
    lock.release()
    assert lock.holder() is None


def test_a_lock_in_a_folder_that_is_missing_cannot_be_taken(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        Lock(tmp_path / "file" / "a.lock").take()
