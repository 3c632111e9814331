"""A claim on a path: one holder at a time, nothing left behind, and no obstacle after a crash."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from autotailor.serving import PoolError
from autotailor.serving.wire import claim
from autotailor.serving.wire.claim import claimed

HOLD = """
import pathlib, sys
from autotailor.serving.wire.claim import claimed
with claimed(pathlib.Path(sys.argv[1])):
    print("claimed", flush=True)
    sys.stdin.read()
"""


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
    monkeypatch.setattr(claim, "PATIENCE_S", 0.1)
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
    (tmp_path / f"s{claim.SUFFIX}").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic links"), claimed(tmp_path / "s"):
        raise AssertionError("a link was followed")
    assert not (tmp_path / "precious").exists()
