"""The note of a run that was started and has no stages yet: for half a minute Snakemake reads and checks the workflow.

The launcher leaves the note, or Snakemake itself where nobody has launched it. The note goes when its process ends. It
counts until the run writes ``logs/run.json``, which happens when the first stage begins.
"""

import atexit
import json
import os
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from autotailor.progress.record import write_note

NOTE = Path(".snakemake/autotailor/starting.json")
LONGEST_S = 3600.0
"""Seconds for which the note of another machine is believed: nobody here sees whether its process was killed."""


@dataclass(frozen=True)
class Starting:
    """A run that was started.

    Attributes:
        pid: of the launcher or of Snakemake.
        host: name of the machine of that process.
        begun: seconds since 1970.
    """

    pid: int
    host: str
    begun: float

    @property
    def is_going_on(self) -> bool:
        """Whether the process works."""
        is_here, age = self.host == socket.gethostname(), time.time() - self.begun
        return is_alive(self.pid, self.host, self.begun) and (is_here or age < LONGEST_S)


def note_start(folder: Path = Path()) -> None:
    """Notes that this process starts a run; the note of a launcher that works stays.

    Args:
        folder: in which the run is started.
    """
    if starting(folder) is not None:
        return
    path = folder.resolve() / NOTE
    with suppress(OSError):  # a full disk ends the run elsewhere, with a better message
        write_note(path, Starting(os.getpid(), socket.gethostname(), time.time()))
        atexit.register(_remove, path, os.getpid())


def starting(folder: Path) -> Starting | None:
    """The run whose start was noted last in a folder; None where that process is gone."""
    note = _read(folder / NOTE)
    return note if note is not None and note.is_going_on else None


def _read(path: Path) -> Starting | None:
    try:
        return Starting(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _remove(path: Path, pid: int) -> None:
    """Removes the note of a process; a process that was forked from it leaves the note."""
    note = _read(path)
    if note is not None and note.pid == pid == os.getpid():
        path.unlink(missing_ok=True)


def is_alive(pid: int, host: str, begun: float) -> bool:
    """Whether a process still works; a process of another machine is believed to work.

    Args:
        pid: number of the process; that of this process counts as gone, because this process asks.
        host: name of the machine of the process.
        begun: when the process left its note, seconds since 1970; a process that began later is another one.
    """
    if host != socket.gethostname():
        return True
    try:
        process = psutil.Process(pid)
        return process.create_time() <= begun + 1 and process.status() != psutil.STATUS_ZOMBIE and pid != os.getpid()
    except psutil.Error:
        return False
