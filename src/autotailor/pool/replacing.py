"""Takes the place of a pool: one process at a time, and without a moment at which a killed process leaves no pool.

Where the system can exchange two folders in one step (``renameat2`` of Linux), the new pool and the old one change
places. Elsewhere the old one is set aside first; ``recover`` moves it back where the process was killed in between.
"""

import ctypes
import errno
import glob
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from autotailor.artifacts import FORGOTTEN_SECONDS, sweep
from autotailor.lock import Lock
from autotailor.serving.errors import PoolError

logger = logging.getLogger(__name__)

LOCK = ".lock"
"""How the name of the file beside a pool ends that is locked by whoever replaces the pool."""
ASIDE = "replaced"
"""Name of an old pool in the temporary folder of the new one, where two folders cannot be exchanged."""
_RENAME_EXCHANGE = 2
_HERE = -100  # AT_FDCWD: paths are those of the process
_UNABLE = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)  # an old kernel, or a file system that cannot exchange


@contextmanager
def held(folder: Path, wait_s: float = 0.0) -> Iterator[None]:
    """Holds a pool against all others that would replace it, while the block runs.

    The system frees what a killed process held.

    Args:
        folder: of the pool, which need not be there yet.
        wait_s: seconds for which to wait for another process.

    Raises:
        PoolError: another process holds the pool, or its folder cannot be made.
    """
    lock = Lock(folder.parent / f".{folder.name}{LOCK}")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        is_free = lock.take()
        if not is_free and wait_s > 0:
            at_work = lock.holder() or "another process"
            logger.warning("%s: is being made or extended by %s: waiting up to %g s", folder, at_work, wait_s)
            is_free = lock.take(wait_s)
    except OSError as error:
        raise PoolError(f"{folder}: cannot be written ({error.strerror or error}); name another folder") from error
    if not is_free:
        holder = lock.holder() or "another process"
        raise PoolError(f"{folder}: is being made or extended by {holder}: wait until it is done, or end it")
    try:
        recover(folder)
        yield
    finally:
        lock.release()


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """Yields the path of a new pool, which takes the place of ``folder`` if the block ends without an error.

    Sockets in the old folder are found in the new one, because servers of the old pool go on.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    recover(folder)
    sweep(folder.parent, folder.name, FORGOTTEN_SECONDS)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as work:
        new = Path(work) / folder.name
        yield new
        if folder.is_dir():
            _keep_sockets(folder, new)
            old = _take_place(new, folder)
            _keep_sockets(old, folder)  # those that were made meanwhile
        else:
            new.replace(folder)


def restore(folder: Path) -> None:
    """Moves back a pool that a killed process had set aside, see ``recover``, unless a process is at work there.

    Raises:
        PoolError: see ``held``.
    """
    if not folder.exists() and any(_set_aside(folder)):
        with held(folder):
            pass


def recover(folder: Path) -> None:
    """Moves back a pool that a killed process had set aside, where there is none in its place."""
    if not folder.exists():
        for left in _set_aside(folder):
            left.replace(folder)
            logger.warning("%s: the pool is back that a killed process had set aside", folder)
            return


def _set_aside(folder: Path) -> Iterator[Path]:
    return folder.parent.glob(f".{glob.escape(folder.name)}.*/{ASIDE}")


def exchange(one: Path, other: Path) -> bool:
    """Lets two folders change places in one step.

    Returns:
        whether the system has done so; False where it cannot.

    Raises:
        OSError: one of the folders is missing, or may not be moved.
    """
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if sys.platform == "linux" else None
    if call is None:
        return False
    if call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNABLE:
        return False
    raise OSError(number, os.strerror(number), str(one), None, str(other))


def _take_place(new: Path, folder: Path) -> Path:
    """Moves a pool to where another one is; returns where the other one is then."""
    if exchange(new, folder):
        return new
    aside = new.parent / ASIDE
    folder.replace(aside)
    try:
        new.replace(folder)
    except OSError:
        aside.replace(folder)
        raise
    return aside


def _keep_sockets(old: Path, new: Path) -> None:
    """Lets the sockets of one folder be found in another one as well."""
    for path in old.iterdir():
        if path.is_socket():
            with suppress(FileExistsError, FileNotFoundError):  # it is there already, or its server has just ended
                _link(path, new / path.name)


def _link(path: Path, other: Path) -> None:
    try:
        os.link(path, other)
    except PermissionError:  # a file system without links
        path.rename(other)
