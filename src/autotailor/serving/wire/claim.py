"""One server at a time begins or ends at the path of a Unix socket, as in ``src/runner/serve/wire/claim.h``.

Otherwise two servers could both find that a socket is a killed server's, and one of them would remove the other's.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from autotailor.serving.errors import PoolError

SUFFIX = ".lock"
"""How the name of the file ends, beside the socket, that is locked while a server begins or ends."""
PATIENCE_S = 5.0
LOOK_S = 0.01


@contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Keeps other servers from beginning or ending at a path while the block runs.

    Args:
        path: of the socket, which need not be there.

    Raises:
        PoolError: another server takes too long.
        OSError: the file that is locked cannot be made.
    """
    lock, end = path.with_name(path.name + SUFFIX), time.monotonic() + PATIENCE_S
    while (descriptor := _taken(lock)) is None:
        if time.monotonic() >= end:
            raise PoolError(
                f"unix:{path}: another server has begun or ended there for {PATIENCE_S:g} s, and holds {lock}: end it, "
                "or choose another path"
            )
        time.sleep(LOOK_S)
    try:
        yield
    finally:
        with suppress(OSError):  # a file that stays does no harm
            lock.unlink()
        os.close(descriptor)


def _taken(lock: Path) -> int | None:
    """A descriptor of the locked file; None while another server has it."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    is_mine = False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_mine = os.path.samestat(os.fstat(descriptor), os.lstat(lock))  # else the last holder has just removed it
    except (BlockingIOError, FileNotFoundError):
        pass
    finally:
        if not is_mine:
            os.close(descriptor)
    return descriptor if is_mine else None
