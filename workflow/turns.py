"""A run that wants what another run in this directory makes waits for the end of that run, and then plans anew.

Snakemake alone would end, and advise to remove the locks of the run that is at work. A waiting run is this program, and
no Snakemake, so that no other run takes it for one that works.

    python workflow/turns.py "PID ..." FOLDER COMMAND ...
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from autotailor import run_lock

SECONDS = 0.5
"""Between two looks at the other runs."""


def take_turns(persistence: Any) -> None:
    """Lets this process of Snakemake wait where it finds the locks of a living run.

    Args:
        persistence: Snakemake's class of what lies in ``.snakemake``.
    """
    lock = persistence.lock

    @functools.wraps(lock)
    def waiting(self: Any) -> AbstractContextManager[None]:
        holders = run_lock.others(Path.cwd()) if self.locked else []
        if holders:
            numbers = " ".join(map(str, holders))
            own = [__file__, numbers, self.dag.workflow.workdir_init, sys.executable, *sys.orig_argv[1:]]
            os.execv(sys.executable, [sys.executable, *own])
        return lock(self)  # type: ignore[no-any-return]

    persistence.lock = waiting


def main(holders: Sequence[int], folder: str, command: Sequence[str]) -> None:
    """Waits until the holders have ended, and becomes the command, in the folder in which it was called."""
    who = "; ".join(map(run_lock.describe, holders))
    print(f"autotailor: another run makes the same files: {who}. Waiting for its end", file=sys.stderr, flush=True)
    try:
        while set(holders) & set(run_lock.others(Path.cwd())):
            time.sleep(SECONDS)
    except KeyboardInterrupt:
        sys.exit("autotailor: interrupted while it waited; the other run goes on")
    os.chdir(folder)
    os.execv(command[0], command)


if __name__ == "__main__":
    main([int(number) for number in sys.argv[1].split()], sys.argv[2], sys.argv[3:])
