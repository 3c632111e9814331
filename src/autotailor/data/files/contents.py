"""Contents of files: each file is read once, and its hash is remembered by its path, size and times of change.

The memory is a SQLite file in the user's cache folder, so that it serves all clones and working directories. A file
that changed less than two seconds before it was read is not remembered: a second change within the same tick of the
file system's clock could not be told from the first.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from autotailor.data.errors import DataError
from autotailor.data.files.memory import Memory
from autotailor.data.progress import progress

SETTLED_NS = 2_000_000_000
BATCH = 1000  # files between two commits: what a killed pass has to read again


@dataclass(frozen=True)
class Examiner:
    """What else is found out about a file while it is read.

    Attributes:
        name: with its version; verdicts of another name are not used.
        examine: from a file's bytes to its verdict, "" where nothing is wrong; called from several threads.
    """

    name: str
    examine: Callable[[bytes], str]


@dataclass(frozen=True)
class Content:
    """One file: ``sha256`` of its bytes in hexadecimal, and the verdict of the examiner, "" without one."""

    sha256: str
    verdict: str = ""


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_contents(paths: Sequence[Path], title: str, examiner: Examiner | None = None) -> list[Content]:
    """Hashes and verdicts of files, in their order; only what changed since the last time is read.

    Args:
        paths: files; each is read whole where there is an examiner.
        title: of the progress that is shown where more than a moment is needed.
        examiner: None: hashes only.

    Raises:
        DataError: a file cannot be read at all (gone, or no permission).
    """
    keys = [os.fsencode(Path(path).absolute()) for path in paths]
    stamps = [_stamp(key) for key in keys]
    name = None if examiner is None else examiner.name
    with Memory() as memory:
        known = memory.recall(keys, stamps, name)
        found = {i: Content(*known[key]) for i, key in enumerate(keys) if key in known}
        pending = [i for i in range(len(keys)) if i not in found]
        with progress(title, len(pending)) as advance, ThreadPoolExecutor(cores()) as pool:
            for first in range(0, len(pending), BATCH):
                part = pending[first : first + BATCH]
                for i, content in zip(part, pool.map(lambda i: _read(keys[i], examiner), part), strict=True):
                    found[i] = content
                    advance()
                memory.remember(
                    [(keys[i], stamps[i], found[i].sha256, found[i].verdict) for i in part if _settled(stamps[i])], name
                )
    return [found[i] for i in range(len(keys))]


def digest(names: Sequence[str], contents: Sequence[Content]) -> str:
    """SHA-256 over names and contents of files, whatever their order."""
    total = hashlib.sha256()
    for name, content in sorted(zip(names, contents, strict=True), key=lambda item: item[0]):
        encoded = os.fsencode(name)
        total.update(b"%d:%s:%s\n" % (len(encoded), encoded, content.sha256.encode()))
    return total.hexdigest()


def _stamp(key: bytes) -> tuple[int, int, int]:
    """Size, and times of change in nanoseconds."""
    try:
        status = os.stat(key)  # noqa: PTH116 (a path as bytes)
    except OSError as error:
        raise _unreadable(key, error) from error
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _settled(stamp: tuple[int, int, int]) -> bool:
    return time.time_ns() - max(stamp[1:]) >= SETTLED_NS


def _read(key: bytes, examiner: Examiner | None) -> Content:
    try:
        with open(key, "rb") as stream:
            if examiner is None:
                return Content(hashlib.file_digest(stream, "sha256").hexdigest())
            content = stream.read()
    except OSError as error:
        raise _unreadable(key, error) from error
    return Content(hashlib.sha256(content).hexdigest(), examiner.examine(content))


def _unreadable(key: bytes, error: OSError) -> DataError:
    return DataError(f"{os.fsdecode(key)}: cannot be read ({error.strerror}); give access to it, or take it away")
