"""Locks of runs that were killed: Snakemake's own survive a SIGKILL, and then no run can start.

Each run holds a lock of the operating system, shared with the other runs in its directory, which is freed when its
process is gone, however it went. A run that finds nobody else knows that whatever Snakemake has locked is stale.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import psutil

LOCK, LOCKS = "runs.lock", "locks"


def hold(folder: Path) -> tuple[int, bool]:
    """Holds the lock of this run until its process ends, and removes what killed runs have left locked.

    Args:
        folder: ``.snakemake`` of the working directory; made where it is missing.

    Returns:
        The file descriptor of the lock, which children do not inherit, and whether something was removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        removed = False
    else:
        removed = not others(folder.parent) and _remove_locks(folder)
    fcntl.flock(descriptor, fcntl.LOCK_SH)  # Snakemake locks later: a run that comes in between finds nothing stale
    return descriptor, removed


def others(directory: Path) -> list[int]:
    """Processes of Snakemake in a directory that are neither this one nor above it: those of earlier versions, say."""
    mine = {os.getpid(), *(process.pid for process in psutil.Process().parents())}
    found = []
    for process in psutil.process_iter():
        try:
            command, where, status = process.cmdline()[:3], process.cwd(), process.status()
        except psutil.Error:
            continue
        named = any(Path(part).name == "snakemake" for part in command)
        here = Path(where) == directory.resolve() and status != psutil.STATUS_ZOMBIE
        if named and here and process.pid not in mine:
            found.append(process.pid)
    return found


def _remove_locks(folder: Path) -> bool:
    left = [path for path in (folder / LOCKS).glob("*") if path.is_file()]
    for path in left:
        path.unlink(missing_ok=True)
    return bool(left)
