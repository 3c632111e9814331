import subprocess
import sys
from pathlib import Path

from autotailor import run_lock

HOLD = """
import pathlib, sys
from autotailor import run_lock
run_lock.hold(pathlib.Path(".snakemake"))
print(flush=True)
sys.stdin.read()
"""


def start(folder: Path) -> subprocess.Popen[bytes]:
    """Another run, which holds the lock until it is killed."""
    run = subprocess.Popen([sys.executable, "-c", HOLD], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert run.stdout is not None
    run.stdout.readline()
    return run


def test_locks_are_removed_once_every_run_is_gone_and_not_before(tmp_path: Path) -> None:
    stale = tmp_path / ".snakemake" / "locks" / "0.input.lock"
    first, second = start(tmp_path), start(tmp_path)
    stale.parent.mkdir()
    stale.touch()
    first.kill()
    first.wait()
    third = start(tmp_path)
    assert stale.exists()
    for run in (second, third):
        run.kill()
        run.wait()
    assert run_lock.hold(tmp_path / ".snakemake")[1]
    assert not stale.exists()
    assert not run_lock.hold(tmp_path / ".snakemake")[1]
