"""The cores that inferences run on: those on which the pool was measured, where the system allows it.

Cores of one processor differ (big and little ones), and so latencies of a pool hold for the cores of its measurements.
Threads inherit the cores of the thread that starts them. A server therefore pins itself before it starts any; only the
thread that prepares members takes back all cores, so that it disturbs no inference where another core is free. A
service within a program pins nothing, because the program's threads are not the service's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection

from autotailor.runtime.errors import PoolError

ANY = "any"


def usable() -> frozenset[int]:
    """Numbers of the cores that the calling thread may use; empty where the system does not tell."""
    if sys.platform == "linux":
        return frozenset(os.sched_getaffinity(0))
    return frozenset()


def use(cores: Collection[int]) -> bool:
    """Lets the calling thread, and those that it starts, run on some cores only; on all as before where none is named.

    Returns:
        whether the system has done so.
    """
    if not cores:
        return True
    if sys.platform == "linux":
        try:
            os.sched_setaffinity(0, cores)
            return True
        except OSError:
            return False
    return False


def parse(text: str) -> tuple[int, ...]:
    """``0,1`` or ``any``, for which the result is empty.

    Raises:
        PoolError: the text is neither.
    """
    words = [] if text == ANY else text.split(",")
    if not all(word.isascii() and word.isdigit() for word in words):
        raise PoolError(f"--cores {text}: expected numbers of cores with commas between them, such as 0,1, or {ANY}")
    return tuple(int(word) for word in words)


def check(asked: Collection[int]) -> None:
    """Raises PoolError where the calling thread may not use a core that a user asks for."""
    mine = usable()
    for core in asked:
        if core not in mine:
            raise PoolError(
                f"--cores {text_of(asked)}: core {core} does not exist here or may not be used; {len(mine)} cores may "
                f"be used: {text_of(sorted(mine))}; name some of these, or {ANY}"
                if mine
                else f"--cores {text_of(asked)}: this system does not let a program choose cores; say {ANY}"
            )


def text_of(cores: Collection[int]) -> str:
    """What ``parse`` reads."""
    return ",".join(map(str, cores)) or ANY
