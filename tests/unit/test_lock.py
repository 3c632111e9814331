"""A lock names its holder, and is free once the holder's process has ended for any reason."""

import json
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


def test_a_note_of_somebody_elses_is_one_printable_line_whatever_it_holds(tmp_path: Path) -> None:
    for since in ("yesterday", 1e300, None):
        note = {"pid": 3, "user": "\x1b]0;you\x07", "since": since, "command": "a\n" * 9999}
        (tmp_path / "a.json").write_text(json.dumps(note))
        said = str(Lock(tmp_path / "a.lock").holder())
        assert said.startswith(r"process 3 of \x1b]0;you\x07 (a a")
        assert len(said) == 300


def test_a_lock_in_a_folder_that_is_missing_cannot_be_taken(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        Lock(tmp_path / "file" / "a.lock").take()
