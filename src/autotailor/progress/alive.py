"""Whether the process still works that has left a note of itself."""

from __future__ import annotations

import os
import socket

import psutil


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
