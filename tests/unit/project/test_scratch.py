"""Temporary folders of killed processes go with the next start; those of living ones stay."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from autotailor.project import scratch

MAKE = """
import os, subprocess, sys, tempfile
from pathlib import Path
from autotailor.project import scratch
folder = scratch.of_run(tempfile.mkdtemp(prefix=sys.argv[1]))
Path(tempfile.mkdtemp(prefix="pymp-"), "listener").touch()
child = subprocess.Popen([sys.executable, "-c", "print(1, flush=True); import time; time.sleep(100)"], stdout=-1)
child.stdout.readline()  # before it runs, the system may not tell its environment
print(folder, child.pid, os.environ[scratch.COMPILED], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.delenv(scratch.COMPILED, raising=False)  # another test of this process may have begun a session
    yield tmp_path
    for folder in list(scratch._HELD):
        if folder.parent == tmp_path:
            scratch.remove(folder)


def start(prefix: str = "snakemake") -> tuple[subprocess.Popen[str], Path, int]:
    """A run with a child of its own, such as a rule."""
    run = subprocess.Popen([sys.executable, "-c", MAKE, prefix], stdin=-1, stdout=-1, text=True)
    assert run.stdout is not None
    folder, child, compiled = run.stdout.readline().split()
    assert Path(compiled).parent == Path(folder).parent  # what PyTorch has compiled serves later runs, too
    return run, Path(folder), int(child)


def test_what_a_killed_run_left_goes_once_its_children_have_ended(place: Path) -> None:
    run, folder, child = start()
    (beside,) = place.glob("snakemake*")
    scratch.make()
    assert folder.is_dir()
    run.kill()
    run.wait()
    scratch.sweep(place)
    assert any(folder.glob("pymp-*"))
    os.kill(child, 9)
    with suppress(psutil.Error):
        psutil.Process(child).wait(20)
    scratch.sweep(place)
    assert not folder.exists()
    assert not beside.exists()


def test_a_run_that_ends_in_order_leaves_nothing_and_answers_for_no_folder_of_another_name(place: Path) -> None:
    run, folder, child = start("photos-")
    os.kill(child, 9)
    run.communicate()
    assert not folder.exists()
    assert [path.name[:7] for path in place.iterdir()] == ["photos-"]


def test_folders_without_a_lock_links_and_other_names_stay(place: Path) -> None:
    names = ("autotailor-12345678", "autotailor-doctor-12345678", "pymp-12345678")
    for name in names:
        (place / name).mkdir()
    (place / "real").mkdir()
    (place / "real" / scratch.LOCK).touch()
    (place / "autotailor-abcdefgh").symlink_to(place / "real")
    scratch.make()
    assert all((place / name).is_dir() for name in (*names, "real", "autotailor-abcdefgh"))


def test_a_removed_folder_frees_its_lock(place: Path) -> None:
    before = psutil.Process().num_fds()
    for _ in range(3):
        scratch.remove(scratch.make())
    assert psutil.Process().num_fds() == before
    assert not list(place.iterdir())
