"""The SQLite file of a LUT store: its folder, transactions, queries and insertions."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from autotailor.profiling.errors import LUTError
from autotailor.profiling.table.schema import prepare

FILE = "operators.sqlite"

WAIT_SECONDS = 60.0
"""How long a transaction waits for that of another process, in seconds."""

_BUSY = f"another process has been writing for more than {WAIT_SECONDS:.0f} s: wait until it is done"

REMEDIES = {
    sqlite3.SQLITE_CORRUPT: "the file is damaged: move it away, and a new store is made; "
    "`sqlite3 FILE .recover` may save the content of the damaged one",
    sqlite3.SQLITE_NOTADB: "the file is no store: move it away, and a new store is made; or set profile.store to "
    "another folder",
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_READONLY: "this user may not write to the store, or its file system is read-only: allow it, or set "
    "profile.store to another folder; the store's content is whole",
    sqlite3.SQLITE_PERM: "this user may not open the store: allow it, or set profile.store to another folder",
    sqlite3.SQLITE_CANTOPEN: "the store cannot be opened or made: allow this user to write to its folder, or set "
    "profile.store to another one",
    sqlite3.SQLITE_FULL: "no space is left: free some, and run again; what was stored before is whole",
    sqlite3.SQLITE_IOERR: "the store's disk does not read or write as it should: see whether it is full or failing, or "
    "set profile.store to a folder on a local disk; what was stored before is whole",
    sqlite3.SQLITE_CONSTRAINT: "a row makes no sense, so no row was written and the store stays as it was",
}
"""Primary result code of SQLite to the remedy."""


class Database:
    """A SQLite file with the tables of `schema`. Safe for threads, concurrent processes and crashes."""

    def __init__(self, folder: Path) -> None:
        """Opens the database of a store in a folder, and makes it where there is none.

        Raises:
            LUTError: the folder cannot be written, or the file is no store of this version.
        """
        self.path = folder.expanduser() / FILE
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LUTError(
                f"LUT store {self.path}: its folder cannot be made ({error.strerror}); set profile.store to another one"
            ) from error
        with self.transaction() as database:
            prepare(database, self.path)

    @contextmanager
    def transaction(self, write: bool = True) -> Iterator[sqlite3.Connection]:
        """A new connection for one ``with`` block. When the block ends, all of its changes are on disk, or none.

        Raises:
            LUTError: SQLite refuses; the message names the remedy.
        """
        try:
            database = sqlite3.connect(self.path, timeout=WAIT_SECONDS, isolation_level=None)
            try:
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA synchronous = FULL")
                database.execute("PRAGMA foreign_keys = ON")
                database.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                yield database
                database.execute("COMMIT")
            finally:
                database.close()  # rolls back what was not committed
        except sqlite3.Error as error:
            raise explained(self.path, error) from error

    def select(self, query: str, *arguments: str) -> list[tuple[Any, ...]]:
        """All rows that a query finds."""
        with self.transaction(write=False) as database:
            return database.execute(query, arguments).fetchall()


KNOWN = {
    "devices": "ON CONFLICT (fingerprint) DO NOTHING",
    "operators": "ON CONFLICT (id) DO NOTHING",
    "powers": "ON CONFLICT (fingerprint, kind) DO NOTHING",
    "visits": "",
    "imported": "",
}
"""What SQLite does with a row whose primary key is known.

``INSERT OR IGNORE`` is not used, because it would drop rows that violate a constraint, in silence.
"""


def insert(database: sqlite3.Connection, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Adds rows. An imported row replaces the row with the same primary key; in other tables the old row stays."""
    verb = "INSERT OR REPLACE" if table == "imported" else "INSERT"
    marks = ", ".join("?" * len(columns))
    database.executemany(f"{verb} INTO {table} ({', '.join(columns)}) VALUES ({marks}) {KNOWN[table]}", rows)


def explained(path: Path, error: sqlite3.Error) -> LUTError:
    """The error that a user sees, with its remedy."""
    code = getattr(error, "sqlite_errorcode", None)  # errors that Python's own module raises have no code
    remedy = REMEDIES.get(code & 0xFF, "") if code is not None else ""
    return LUTError(f"LUT store {path}: {error}{': ' + remedy if remedy else ''}")
