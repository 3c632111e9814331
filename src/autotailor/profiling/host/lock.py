"""One device serves one run at a time."""

from __future__ import annotations

import getpass
import json
import logging
import os
import re
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Holder:
    """Who holds a device.

    Attributes:
        pid: the number of the process.
        user: the user who runs the process.
        since: when the process took the device, in seconds since 1970.
        command: the process's command line.
    """

    pid: int
    user: str
    since: float
    command: str

    def __str__(self) -> str:
        since = time.strftime("%H:%M:%S", time.localtime(self.since))
        return f"process {self.pid} of {self.user} ({self.command}), since {since}"


class DeviceLock:
    """A lock on a device. The operating system frees the lock when its process ends, even if the process is killed.

    Args:
        identity: the device's identity, see ``Transport.identity``.
        name: the device's name, for messages.
        remind: seconds between two messages while waiting.
    """

    def __init__(self, identity: str, name: str, remind: float = 60.0) -> None:
        path = Path(tempfile.gettempdir()) / f"autotailor-device-{re.sub(r'[^A-Za-z0-9.-]+', '-', identity)}.lock"
        self._lock = FileLock(path, mode=0o666)
        self._note = path.with_suffix(".json")
        self._name = name
        self._remind = remind

    def acquire(self) -> None:
        """Takes the device. Waits while somebody else holds it, and warns who that is."""
        wait = 0.0
        while not self._try(wait):
            holder = self.holder() or "another process"
            logger.warning(
                "device %s is in use by %s: waiting until it is free; end that to begin now", self._name, holder
            )
            wait = self._remind
        self._leave_note()

    def try_acquire(self) -> bool:
        """Takes the device if nobody else holds it at this moment; returns whether it was taken."""
        free = self._try(0.0)
        if free:
            self._leave_note()
        return free

    def is_held(self) -> bool:
        """Whether somebody else holds the device at this moment."""
        free = self._try(0.0)
        if free:
            self._lock.release()
        return not free

    def release(self) -> None:
        """Gives the device back; safe to call twice."""
        if self._lock.is_locked:
            with suppress(OSError):
                self._note.unlink(missing_ok=True)
            self._lock.release()

    def holder(self) -> Holder | None:
        """Who took the device last; None where this is not known."""
        try:
            return Holder(**json.loads(self._note.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def _try(self, seconds: float) -> bool:
        """Waits for the lock for some seconds; returns whether it was acquired."""
        try:
            self._lock.acquire(timeout=seconds)
        except Timeout:
            return False
        return True

    def _leave_note(self) -> None:
        holder = Holder(os.getpid(), _user(), time.time(), " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:80])
        with suppress(OSError):  # the note is for messages only, so a missing note does no harm
            self._note.unlink(missing_ok=True)
            self._note.write_text(json.dumps(asdict(holder)), encoding="utf-8")

    def __enter__(self) -> DeviceLock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "?"
