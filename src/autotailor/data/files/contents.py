"""Contents of files: each file is read once, and its hash is remembered by its path, size and times of change.

The memory is a SQLite file in the user's cache folder, so that all clones and working directories share it. A file
that changed less than two seconds ago is not remembered, because a second change within the same tick of the file
system's clock would leave size and times as they were.
"""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from autotailor.artifacts import open_regular
from autotailor.data.errors import DataError
from autotailor.data.files.memory import Memory
from autotailor.data.progress import progress

SETTLED_NS = 2_000_000_000
MOST_BYTES = 2**30
"""Bytes of a file that an examiner gets, which lies in memory meanwhile."""
BATCH = 1000  # files between two commits; a pass that is killed loses at most this many


@dataclass(frozen=True)
class Examiner:
    """A check of each file's bytes while the file is read.

    Attributes:
        name: of the check, with its version; verdicts stored under another name are not reused.
        examine: from a file's bytes to its verdict, "" where the file is good; several threads call it.
    """

    name: str
    examine: Callable[[bytes], str]


@dataclass(frozen=True)
class Content:
    """One file: ``sha256`` of its bytes in hexadecimal, and the examiner's verdict ("" without an examiner)."""

    sha256: str
    verdict: str = ""


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_contents(paths: Sequence[Path], title: str, examiner: Examiner | None = None) -> list[Content]:
    """Hashes and verdicts of files, in the order of the paths; only files that changed since the last call are read.

    Args:
        paths: of the files.
        title: of the progress that is shown where reading takes more than a moment.
        examiner: gives each file its verdict and reads the file into memory whole; None gives hashes only.

    Raises:
        DataError: a file is gone, or may not be read.
    """
    keys = [os.fsencode(Path(path).absolute()) for path in paths]
    stamps = [_stamp(key) for key in keys]
    name = None if examiner is None else examiner.name
    with Memory() as memory:
        recalled = memory.recall(keys, stamps, name)
        contents = {i: Content(*recalled[key]) for i, key in enumerate(keys) if key in recalled}
        pending = [i for i in range(len(keys)) if i not in contents]
        with progress(title, len(pending)) as advance, ThreadPoolExecutor(cores()) as pool:
            for first in range(0, len(pending), BATCH):
                part = pending[first : first + BATCH]
                for i, content in zip(part, pool.map(lambda i: read_content(keys[i], examiner), part), strict=True):
                    contents[i] = content
                    advance()
                settled = [i for i in part if _settled(stamps[i])]
                memory.remember([(keys[i], stamps[i], contents[i].sha256, contents[i].verdict) for i in settled], name)
    return [contents[i] for i in range(len(keys))]


def digest(names: Sequence[str], contents: Sequence[Content]) -> str:
    """SHA-256 over names and contents of files; it does not depend on their order."""
    total = hashlib.sha256()
    for name, content in sorted(zip(names, contents, strict=True), key=lambda item: item[0]):
        encoded = os.fsencode(name)
        total.update(b"%d:%s:%s\n" % (len(encoded), encoded, content.sha256.encode()))
    return total.hexdigest()


def _stamp(key: bytes) -> tuple[int, int, int]:
    """Size, and the times at which content and metadata changed, in nanoseconds."""
    try:
        status = os.stat(key)  # noqa: PTH116 (a path as bytes)
    except OSError as error:
        raise _unreadable(key, error) from error
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _settled(stamp: tuple[int, int, int]) -> bool:
    return time.time_ns() - max(stamp[1:]) >= SETTLED_NS


def read_content(key: bytes, examiner: Examiner | None) -> Content:
    """Reads one file: its SHA-256, and an examiner's verdict where there is one.

    Raises:
        DataError: the file cannot be read.
    """
    try:
        with open_regular(key, None if examiner is None else MOST_BYTES) as stream:
            if examiner is None:
                return Content(hashlib.file_digest(stream, "sha256").hexdigest())
            content = stream.read()
    except OSError as error:
        if examiner is not None and error.errno == errno.EINVAL:
            return Content(hashlib.sha256(key).hexdigest(), str(error.strerror))
        raise _unreadable(key, error) from error
    return Content(hashlib.sha256(content).hexdigest(), examiner.examine(content))


def _unreadable(key: bytes, error: OSError) -> DataError:
    return DataError(f"{os.fsdecode(key)}: cannot be read ({error.strerror}); give access to it, or remove it")


def verdict_on(digest: str, examiner: str, examine: Callable[[], str]) -> str:
    """The verdict on data of many files; a later call for the same data gives it without another examination.

    Args:
        digest: of the data, hexadecimal.
        examiner: name of the check, with its version; verdicts stored under another name are not reused.
        examine: the check; "" where the data are good.
    """
    key, stamp = b"digest " + digest.encode(), (0, 0, 0)
    with Memory() as memory:
        if key in (recalled := memory.recall([key], [stamp], examiner)):
            return recalled[key][1]
    verdict = examine()
    with Memory() as memory:
        memory.remember([(key, stamp, digest, verdict)], examiner)
    return verdict
