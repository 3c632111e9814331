"""What SQLite says against the LUT store, with what helps: only a damaged file has to be moved away."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from autotailor.profiling.errors import LUTError

WAIT_SECONDS = 60.0
"""How long another process's transaction is waited for."""

_BUSY = f"another process has been writing for more than {WAIT_SECONDS:.0f} s: wait until it is done"

REMEDIES = {
    sqlite3.SQLITE_CORRUPT: "the file is damaged: move it away, and a new store is made; "
    "`sqlite3 FILE .recover` may save what is in it",
    sqlite3.SQLITE_NOTADB: "the file is no store: move it away, and a new one is made; or set profile.store to another "
    "folder",
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_READONLY: "this user may not write to it, or its file system is read-only: allow it, or set "
    "profile.store to another folder; what is in it is whole",
    sqlite3.SQLITE_PERM: "this user may not open it: allow it, or set profile.store to another folder",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened or made: allow this user to write to its folder, or set "
    "profile.store to another one",
    sqlite3.SQLITE_FULL: "no space is left: free some, and run again; what was stored before is whole",
    sqlite3.SQLITE_IOERR: "its disk does not read or write as it should: see whether it is full or failing, or set "
    "profile.store to a folder on a local disk; what was stored before is whole",
    sqlite3.SQLITE_CONSTRAINT: "rows that make no sense were to be written: none of them is, the store stays as it was",
}
"""Primary result code of SQLite to the remedy."""


def explained(path: Path, error: sqlite3.Error) -> LUTError:
    """The error for a user."""
    code = getattr(error, "sqlite_errorcode", None)  # some are of Python's own module
    remedy = REMEDIES.get(code & 0xFF, "") if code is not None else ""
    return LUTError(f"LUT store {path}: {error}{': ' + remedy if remedy else ''}")
