"""Runs Snakemake when no other run of the launcher is at work in this directory: `make run` twice waits.

    python workflow/launch.py [snakemake arguments]

The lock is the system's, so that a launcher that was killed frees it. What a killed Snakemake has left locked is
removed when the next one reads the workflow (``autotailor.run_lock``).
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

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


def main() -> int:
    """Takes the lock, runs Snakemake."""
    descriptor = take_lock()
    command = [str(Path(sys.executable).with_name("snakemake")), *sys.argv[1:]]
    return subprocess.run(command, pass_fds=(descriptor,), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
