"""Folders of runs on a remote device: who made each folder, and whether the run that made it still works.

A lock on this computer shows neither that two addresses belong to one device, nor that another computer measures on
the device. The folders on the device show both: each run makes one, named after the run's computer, user and process.
"""

import hashlib
import os
import platform
import re
import secrets
import uuid
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

QUIET_SECONDS = 300.0
"""A run that has done nothing on the device for this long does not use the device at this moment."""
OLD_SECONDS = 30 * 24 * 3600.0
"""A folder in which nothing has happened for this long is removed, though nobody has rescued its journals."""
TICKS = 19
"""Index of a process's start time among the words that follow the process's name in ``/proc/PID/stat``."""


@dataclass(frozen=True)
class RunFolder:
    """One run's folder on a device.

    Attributes:
        name: the folder's name.
        works: whether a command runs in the folder.
        idle_seconds: seconds since something was made in the folder.
    """

    name: str
    works: bool
    idle_seconds: float

    @property
    def is_dead(self) -> bool:
        """Whether a process of this computer and user made the folder, and no longer uses it.

        Either that process has ended, or it is this process, which has another folder by now.
        """
        computer, process = self._made_by
        return computer == _computer() and not _is_alive(process)

    @property
    def is_at_work(self) -> bool:
        """Whether the folder's run uses the device at this moment.

        The idle time is negative where the device's clock has been set back since.
        """
        return not self.is_dead and (self.works or abs(self.idle_seconds) < QUIET_SECONDS)

    @property
    def is_old(self) -> bool:
        """Whether the folder has been idle so long that its content is given up."""
        return not self.works and self.idle_seconds > OLD_SECONDS

    @property
    def owner(self) -> str:
        """Who made the folder, for messages."""
        computer, process = self._made_by
        if computer == _computer():
            return f"process {process.partition('_')[0]} of this computer, under another address"
        return f"another computer or user ({computer.rpartition('_')[0] or computer})"

    @property
    def _made_by(self) -> tuple[str, str]:
        """(computer and user, process and its start)."""
        computer, _, rest = self.name.removeprefix("run-").partition("-")
        return computer, rest.partition("-")[0]


def new_name() -> str:
    """A new name for a folder of this process."""
    return f"run-{_computer()}-{os.getpid()}_{_started(os.getpid())}-{secrets.token_hex(4)}"


def parse(text: str) -> list[RunFolder]:
    """Reads the folders that the script ``scripts.RUNS`` prints."""
    folders = re.findall(r"^(run-\S+) ([01]) (-?\d+)\r?$", text, re.MULTILINE)
    return [RunFolder(name, works == "1", float(idle)) for name, works, idle in folders]


@cache
def _computer() -> str:
    """This computer and user. A number tells computers, and containers on one computer, of the same name apart."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", platform.node() or "unknown")
    number = _text("/etc/machine-id") or str(uuid.getnode())
    with suppress(OSError):  # no Linux, no containers
        number += str(Path("/proc/self/ns/pid").readlink())
    digest = hashlib.sha256(number.encode()).hexdigest()[:6]
    return f"{name}_{digest}_{os.getuid() if hasattr(os, 'getuid') else 0}"


def _is_alive(process: str) -> bool:
    """Whether a process other than this one, written ``PID_START``, still exists."""
    number, _, started = process.partition("_")
    return number.isdigit() and int(number) != os.getpid() and started == _started(int(number))


def _started(process: int) -> str:
    """When a process was started; empty where no process has this number.

    The start tells two processes that had the same number apart. On Linux it is counted in ticks since the system's
    start, and names that start, so that setting the clock does not change it.
    """
    if said := _text(f"/proc/{process}/stat"):
        return f"{said.rpartition(')')[2].split()[TICKS]}_{_text('/proc/sys/kernel/random/boot_id')[:8]}"
    try:
        return str(int(psutil.Process(process).create_time()))
    except psutil.Error:
        return ""


def _text(path: str) -> str:
    """A file's text; empty where the file cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
