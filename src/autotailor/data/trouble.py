"""What PyTorch says where a process that prepares images has died, and what a person can do about it."""

from __future__ import annotations

import re

_DIED = re.compile(r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\) (is killed by signal: \w[^.]*|exited unexpectedly)")
REMEDY = (
    "most often because memory was exhausted, or /dev/shm where it is a container; give more memory or lower "
    "data.workers, and give the same command again: a training goes on from its last checkpoint"
)


def reader_trouble(error: BaseException) -> str:
    """What a person can do about a process that died while it prepared images; "" for every other error.

    PyTorch tells of such a death by a ``RuntimeError``, which interrupts the main thread wherever it is.
    """
    death = _DIED.search(str(error)) if isinstance(error, RuntimeError) else None
    return _message(death[1].replace("is killed", "was killed").strip()) if death else ""


def handover_trouble(error: BaseException) -> str:
    """As ``reader_trouble``, also for an error of a handover: the process may have died while it handed a batch over.

    An error that the process itself has met, and that PyTorch only passes on, gives "".
    """
    if isinstance(error, ConnectionError | EOFError) and "in DataLoader worker process" not in str(error):
        return _message("was gone before it had handed a batch over")
    return reader_trouble(error)


def _message(what: str) -> str:
    return f"a process that prepares images died (it {what}), {REMEDY}"
