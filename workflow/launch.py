"""Runs Snakemake; a second launcher in the same directory waits until the first one has ended.

    python workflow/launch.py [snakemake arguments]

The launcher holds a lock of the operating system, which is freed even if the launcher is killed. Locks of a killed
Snakemake are removed when the next Snakemake reads the workflow (``autotailor.run_lock``).
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from pathlib import Path

from autotailor import artifacts
from autotailor.progress.starting import note_start
from autotailor.project import foreground

LOCK = Path(".snakemake") / "launch.lock"
DRY = {"-n", "--dry-run", "--dryrun"}


def take_lock() -> int:
    """Waits for the end of another launcher's run; returns the file descriptor of the lock."""
    LOCK.parent.mkdir(exist_ok=True)
    descriptor = os.open(LOCK, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("autotailor: waiting for the end of another run in this directory", file=sys.stderr)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def main() -> int:
    """Takes the lock, and runs Snakemake; ``autotailor status`` hears at once that a run is starting."""
    try:
        descriptor = take_lock()
    except KeyboardInterrupt:
        print("autotailor: interrupted while it waited; the other run goes on", file=sys.stderr)
        return 128 + signal.SIGINT
    except OSError as error:
        sys.exit(f"autotailor: {artifacts.disk_trouble(error) or error}")
    if not DRY & set(sys.argv[1:]):
        note_start()
    command = [str(Path(sys.executable).with_name("snakemake")), *sys.argv[1:]]
    return foreground.run(command, pass_fds=(descriptor,))


if __name__ == "__main__":
    sys.exit(main())
