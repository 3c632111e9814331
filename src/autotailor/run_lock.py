"""Removes the locks of killed runs: Snakemake's locks survive a SIGKILL, and then no run can start.

Each run holds a lock of the operating system, which it shares with other runs in its directory. The system frees the
lock when the process ends for any reason. A run that is alone therefore knows that Snakemake's locks are stale.
"""

import fcntl
import os
from pathlib import Path

import psutil

from autotailor.lock import Holder

LOCK, LOCKS = "runs.lock", "locks"


def hold(folder: Path) -> tuple[int, bool]:
    """Holds the lock of this run until its process ends, and removes the locks of killed runs.

    Args:
        folder: ``.snakemake`` of the working directory; made if missing.

    Returns:
        The file descriptor of the lock, which child processes do not inherit, and whether locks were removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        removed = False
    else:
        removed = not others(folder.parent) and _remove_locks(folder)
    fcntl.flock(descriptor, fcntl.LOCK_SH)  # shared before Snakemake locks: a later run then removes no valid lock
    return descriptor, removed


def others(directory: Path) -> list[int]:
    """Other processes of Snakemake in a directory, such as runs of earlier versions, which hold no such lock.

    This process and its ancestors are left out.
    """
    mine = {os.getpid(), *(process.pid for process in psutil.Process().parents())}
    pids = []
    for process in psutil.process_iter():
        try:
            command, where, status = process.cmdline()[:3], process.cwd(), process.status()
        except psutil.Error:
            continue
        named = any(Path(part).name == "snakemake" for part in command)
        here = Path(where) == directory.resolve() and status != psutil.STATUS_ZOMBIE
        if named and here and process.pid not in mine:
            pids.append(process.pid)
    return pids


def describe(pid: int) -> str:
    """Who a process is, since when, and what it runs; a process that has ended is a number."""
    try:
        process = psutil.Process(pid)
        command = " ".join(Path(part).name for part in process.cmdline()[1:])
        return str(Holder(pid, process.username(), process.create_time(), command[:80]))
    except psutil.Error:
        return f"process {pid}"


def _remove_locks(folder: Path) -> bool:
    left = [path for path in (folder / LOCKS).glob("*") if path.is_file()]
    for path in left:
        path.unlink(missing_ok=True)
    return bool(left)
