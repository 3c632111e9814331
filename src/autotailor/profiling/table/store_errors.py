"""Errors of SQLite on the LUT store, each with its remedy. Only a damaged file has to be moved away."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from autotailor.profiling.errors import LUTError

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


def explained(path: Path, error: sqlite3.Error) -> LUTError:
    """The error that a user sees, with its remedy."""
    code = getattr(error, "sqlite_errorcode", None)  # errors that Python's own module raises have no code
    remedy = REMEDIES.get(code & 0xFF, "") if code is not None else ""
    return LUTError(f"LUT store {path}: {error}{': ' + remedy if remedy else ''}")
