"""Plain `snakemake`, killed: the next one goes on, without `--unlock` and without the launcher."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from autotailor.progress.starting import NOTE
from autotailor.progress.status import read_status

ROOT = Path(__file__).parents[2]
COMMAND = [str(Path(sys.executable).with_name("snakemake")), "--snakefile", str(ROOT / "Snakefile"), "--cores", "1"]
COMMAND += ["--profile", str(ROOT / "profiles" / "default"), "--no-hooks", "--", "results/resnet_digits/pretrained.pt"]


@contextmanager
def started(folder: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A run, which does not outlive the test."""
    with log.open("wb") as said:
        run = subprocess.Popen(COMMAND, cwd=folder, stdout=said, stderr=said, start_new_session=True)
        try:
            yield run
        finally:
            with suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
            run.wait()


def wait_for(found: Callable[[], object]) -> None:
    deadline = time.monotonic() + 240
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_killed_snakemake_is_started_again_and_goes_on(tmp_path: Path) -> None:
    locks = tmp_path / ".snakemake" / "locks"
    with started(tmp_path, tmp_path / "first.txt") as run:
        wait_for((tmp_path / NOTE).exists)
        assert read_status(tmp_path).state == "starting"
        wait_for(
            lambda: (
                locks.is_dir() and any(locks.iterdir()) and "pretrain: trains" in (tmp_path / "first.txt").read_text()
            )
        )
        run.send_signal(signal.SIGKILL)  # the process that holds the locks, and no other
        run.wait()
        assert any(locks.iterdir())
    second = tmp_path / "second.txt"
    with started(tmp_path, second) as run:
        wait_for(lambda: "pretrain: trains" in second.read_text() or run.poll() is not None)
        said = second.read_text()
        assert run.poll() is None, said
        assert "an earlier run was killed; this run continues its work" in said
