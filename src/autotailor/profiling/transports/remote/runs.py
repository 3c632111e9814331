"""Folders of runs on a remote device: whose they are, and whether these still work.

A lock of this computer cannot tell that two addresses are one device, nor that another computer measures on it. What
lies on the device can: each run has a folder there, named after its computer, user and process.
"""

from __future__ import annotations

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
"""A run that has done nothing on the device for so long does not use it at this moment."""
OLD_SECONDS = 30 * 24 * 3600.0
"""What a run has left that nobody has asked for in so long is given up."""
TICKS = 19
"""Place of a process's start behind its name in ``/proc/PID/stat``."""


@dataclass(frozen=True)
class RunFolder:
    """One run's folder on a device.

    Attributes:
        name: of the folder.
        works: whether a command runs in it.
        idle_seconds: since something was made in it.
    """

    name: str
    works: bool
    idle_seconds: float

    @property
    def is_dead(self) -> bool:
        """Whether a process of this computer and user made it that is gone, or this one, which has another by now."""
        computer, process = self._made_by
        return computer == _computer() and not _is_alive(process)

    @property
    def is_at_work(self) -> bool:
        """Whether its run uses the device at this moment; a device's clock may have been set back since."""
        return not self.is_dead and (self.works or abs(self.idle_seconds) < QUIET_SECONDS)

    @property
    def is_old(self) -> bool:
        """Whether what it has left is given up."""
        return not self.works and self.idle_seconds > OLD_SECONDS

    @property
    def owner(self) -> str:
        """Whose it is, for messages."""
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
    """A name for a folder of this process."""
    return f"run-{_computer()}-{os.getpid()}_{_started(os.getpid())}-{secrets.token_hex(4)}"


def parse(text: str) -> list[RunFolder]:
    """The folders that the script ``RUNS`` prints."""
    found = re.findall(r"^(run-\S+) ([01]) (-?\d+)\r?$", text, re.MULTILINE)
    return [RunFolder(name, works == "1", float(idle)) for name, works, idle in found]


@cache
def _computer() -> str:
    """This computer and user; others, and containers of it, may have the same name, they have another number."""
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
    """When a process was started, so that no other one with its number has the same; empty: there is none.

    On Linux ticks since the start of the system, and which start that was: setting the clock does not change them.
    """
    if said := _text(f"/proc/{process}/stat"):
        return f"{said.rpartition(')')[2].split()[TICKS]}_{_text('/proc/sys/kernel/random/boot_id')[:8]}"
    try:
        return str(int(psutil.Process(process).create_time()))
    except psutil.Error:
        return ""


def _text(path: str) -> str:
    """What a file says; empty where it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
