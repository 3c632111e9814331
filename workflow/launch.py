"""Runs Snakemake so that a run that was killed anywhere can simply be started again.

Snakemake's locks survive a SIGKILL. The launcher holds a lock of its own, which the system frees when the launcher
and its Snakemake are gone: whoever gets it knows that Snakemake's locks in this directory are stale.

    python workflow/launch.py [snakemake arguments]
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import psutil

LOCK = Path(".snakemake") / "launch.lock"


def take_lock() -> int:
    """File descriptor of the lock; waits for a run that is still at work."""
    LOCK.parent.mkdir(exist_ok=True)
    descriptor = os.open(LOCK, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("autotailor: another run is at work in this directory; waiting for its end", file=sys.stderr)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def other_snakemakes() -> list[int]:
    """Processes of Snakemake that work in this directory without the launcher."""
    found = []
    for process in psutil.process_iter():
        try:
            command, where, status = process.cmdline()[:3], process.cwd(), process.status()
        except psutil.Error:
            continue
        named = any(Path(part).name == "snakemake" for part in command)
        if named and Path(where) == Path.cwd() and status != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


def unlock() -> None:
    """Removes Snakemake's locks where their owner is dead."""
    if not any((Path(".snakemake") / "locks").glob("*")) or other_snakemakes():
        return
    print("autotailor: an earlier run was killed; going on where it stopped", file=sys.stderr)
    for lock in (Path(".snakemake") / "locks").glob("*"):
        lock.unlink()


def main() -> int:
    """Takes the lock, clears stale ones, runs Snakemake."""
    descriptor = take_lock()
    unlock()
    command = [str(Path(sys.executable).with_name("snakemake")), *sys.argv[1:]]
    return subprocess.run(command, pass_fds=(descriptor,), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
