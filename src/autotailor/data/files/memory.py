"""The SQLite file behind ``contents.py``: hashes of files by path, and examiners' verdicts by hash."""

from __future__ import annotations

import contextlib
import itertools
import logging
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

logger = logging.getLogger(__name__)
CHUNK = 500  # parameters of one query; old versions of SQLite allow at most 999
WAIT_SECONDS = 60.0
TABLES = """
CREATE TABLE IF NOT EXISTS files (path BLOB PRIMARY KEY, stamp TEXT NOT NULL, sha256 TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS verdicts (
    sha256 TEXT NOT NULL, examiner TEXT NOT NULL, verdict TEXT NOT NULL, PRIMARY KEY (sha256, examiner)
) WITHOUT ROWID;
"""
Stamp = tuple[int, int, int]


def default_path() -> Path:
    """The file in the user's cache folder (on Linux ``$XDG_CACHE_HOME/autotailor``)."""
    import platformdirs

    return platformdirs.user_cache_path("autotailor") / "contents.sqlite"


class Memory:
    """Remembers contents of files across processes.

    Where the SQLite file cannot be used, nothing is remembered, a warning says so, and no call fails.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or default_path()
        self._database: sqlite3.Connection | None = None

    def __enter__(self) -> Memory:
        try:
            self._database = _open(self._path)
        except sqlite3.OperationalError as error:
            self._forget(error)
        except sqlite3.DatabaseError:  # the file is damaged; a new one replaces it
            with contextlib.suppress(OSError):
                self._path.unlink()
            self._retry()
        except OSError as error:
            self._forget(error)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._database is not None:
            self._database.close()

    def recall(
        self, paths: Sequence[bytes], stamps: Sequence[Stamp], examiner: str | None
    ) -> dict[bytes, tuple[str, str]]:
        """Maps the paths of files whose stamp has not changed to (SHA-256, verdict).

        Args:
            paths: of the files.
            stamps: of the files, one per path.
            examiner: whose verdict is wanted; with None, every verdict is "".
        """
        expected = dict(zip(paths, map(_text, stamps), strict=True))
        rows = self._select("SELECT path, stamp, sha256 FROM files WHERE path IN ({})", paths)
        hashes = {path: sha256 for path, stamp, sha256 in rows if expected[path] == stamp}
        if examiner is None:
            return {path: (sha256, "") for path, sha256 in hashes.items()}
        query = "SELECT sha256, verdict FROM verdicts WHERE sha256 IN ({}) AND examiner = ?"
        verdicts = dict(self._select(query, sorted(set(hashes.values())), examiner))
        return {path: (sha256, verdicts[sha256]) for path, sha256 in hashes.items() if sha256 in verdicts}

    def remember(self, rows: Sequence[tuple[bytes, Stamp, str, str]], examiner: str | None) -> None:
        """Stores rows of (path, stamp, SHA-256, verdict); the verdicts only where an examiner is named."""
        if self._database is None:
            return
        try:
            with self._database as transaction:
                files = [(path, _text(stamp), sha256) for path, stamp, sha256, _ in rows]
                transaction.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", files)
                if examiner is not None:
                    verdicts = [(sha256, examiner, verdict) for _, _, sha256, verdict in rows]
                    transaction.executemany("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)", verdicts)
        except sqlite3.Error as error:
            self._forget(error)

    def _select(self, query: str, values: Sequence[Any], *more: Any) -> Iterator[Any]:
        for part in _chunks(values):
            if self._database is None:
                return
            try:
                yield from self._database.execute(query.format(",".join("?" * len(part))), (*part, *more)).fetchall()
            except sqlite3.Error as error:
                self._forget(error)

    def _retry(self) -> None:
        try:
            self._database = _open(self._path)
        except (sqlite3.Error, OSError) as error:
            self._forget(error)

    def _forget(self, error: Exception) -> None:
        logger.warning(
            "%s cannot be used (%s): all data are read again each time; give write access to it", self._path, error
        )
        self._database = None


def _open(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(path, timeout=WAIT_SECONDS)
    try:
        database.executescript(TABLES)
    except sqlite3.Error:
        database.close()
        raise
    return database


def _text(stamp: Stamp) -> str:
    return ":".join(map(str, stamp))


def _chunks(values: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    iterator = iter(values)
    while part := tuple(itertools.islice(iterator, CHUNK)):
        yield part
