"""Folders for temporary files that go with the process that made them, also where it is killed.

A folder holds a lock of the operating system, which is freed when the process and those that it has forked have ended.
The next process that makes such a folder removes folders of the same user whose lock is free, unless a program that was
started with the folder as its place for temporary files still runs.
"""

import atexit
import fcntl
import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import psutil

PREFIX, LOCK, BESIDE = "autotailor-", ".lock", ".beside"
COMPILED = "TORCHINDUCTOR_CACHE_DIR"
"""Names the folder in which PyTorch keeps what it has compiled, for later runs, too."""
_NAME = re.compile(rf"{PREFIX}[a-z0-9_]{{8}}")
_MADE = re.compile(r"(snakemake|pymp-)[a-z0-9_]{8}")
"""Folders of others' making that a folder may answer for."""
_HELD: dict[Path, tuple[int, int]] = {}
"""Folders with the process that made them, and the descriptor of the lock."""


def make() -> Path:
    """A new folder in the temporary folder, and gone with this process; folders that killed processes left go now."""
    place = Path(tempfile.gettempdir())
    sweep(place)
    made = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=place))
    lock = os.open(made / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    folder = made.rename(made.with_name(made.name.removeprefix(".")))  # other processes see it with its lock alone
    _HELD[folder] = (os.getpid(), lock)
    return folder


def of_run(beside: str | None = None) -> Path:
    """Makes a folder in which this process, and all that it starts from now on, have their temporary files.

    Args:
        beside: a temporary folder that was made before, and that goes with this one where its name allows no doubt.
    """
    folder = make()
    if beside and _MADE.fullmatch(Path(beside).name):
        (folder / BESIDE).symlink_to(Path(beside).absolute())
    os.environ.setdefault(COMPILED, str(folder.parent / f"torchinductor_{os.getuid()}"))
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    return folder


def sweep(place: Path) -> None:
    """Removes the folders in a place whose processes have ended."""
    for folder in place.glob(f"{PREFIX}*"):
        with suppress(OSError):  # of another user, or gone by now
            if _NAME.fullmatch(folder.name) and not folder.is_symlink() and _is_left(folder):
                remove(folder)


def remove(folder: Path) -> None:
    """Removes a folder, and what it answers for, and frees its lock; safe to call twice."""
    with suppress(OSError):
        beside = (folder / BESIDE).readlink()
        if beside.parent == folder.parent and beside.stat().st_uid == os.getuid():
            shutil.rmtree(beside, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    if folder in _HELD:
        os.close(_HELD.pop(folder)[1])


def _is_left(folder: Path) -> bool:
    """Whether this user's process that made a folder has ended, and all that it started there."""
    if folder.stat().st_uid != os.getuid():
        return False
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)  # a folder without lock is none of ours
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return not any(_works_in(folder, process) for process in psutil.process_iter())


def _works_in(folder: Path, process: psutil.Process) -> bool:
    try:
        return process.environ().get("TMPDIR") == str(folder) or folder in Path(process.cwd(), "x").parents
    except (psutil.Error, OSError):  # of another user, or ended
        return False


@atexit.register
def _end() -> None:
    """Removes what this process has made; a forked process ends without its parent's folders."""
    for folder, (maker, _) in list(_HELD.items()):
        if maker == os.getpid():
            remove(folder)
