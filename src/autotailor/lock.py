"""A lock that tells who holds it. The operating system frees the lock when its process ends, even if it is killed."""

import getpass
import json
import os
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from autotailor.ir.errors import printable


@dataclass(frozen=True)
class Holder:
    """Who holds a lock.

    Attributes:
        pid: the number of the process.
        user: the user who runs the process.
        since: when the process took the lock, in seconds since 1970.
        command: the process's command line.
    """

    pid: int
    user: str
    since: float
    command: str

    def __str__(self) -> str:
        try:
            since = time.strftime("%H:%M:%S", time.localtime(self.since))
        except (TypeError, ValueError, OverflowError, OSError):  # somebody else has written the note
            since = "?"
        return printable(f"process {self.pid} of {self.user} ({self.command}), since {since}").replace("\n", " ")[:300]


class Lock:
    """A lock on a file.

    Args:
        path: of the file; a note beside it, which ends in ``.json``, names the holder.
    """

    def __init__(self, path: Path) -> None:
        self._lock = FileLock(path, mode=0o666)
        self._note = path.with_suffix(".json")

    def take(self, seconds: float = 0.0) -> bool:
        """Waits for the lock for some seconds; returns whether it was taken.

        Raises:
            OSError: the file cannot be made.
        """
        try:
            self._lock.acquire(timeout=seconds)
        except Timeout:
            return False
        self._leave_note()
        return True

    def release(self) -> None:
        """Gives the lock back; safe to call twice."""
        if self._lock.is_locked:
            with suppress(OSError):
                self._note.unlink(missing_ok=True)
            self._lock.release()

    def holder(self) -> Holder | None:
        """Who took the lock last; None where this is not known."""
        try:
            return Holder(**json.loads(self._note.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def _leave_note(self) -> None:
        holder = Holder(os.getpid(), _user(), time.time(), " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:80])
        with suppress(OSError):  # the note is for messages only, so a missing note does no harm
            self._note.unlink(missing_ok=True)
            self._note.write_text(json.dumps(asdict(holder)), encoding="utf-8")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "?"
