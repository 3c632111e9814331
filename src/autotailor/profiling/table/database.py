"""The SQLite file of a LUT store: its folder, transactions, queries and insertions.

Constraints refuse rows that make no sense; stores of an older schema are taken over. The tables:

    devices    fingerprint, and the facts whose hash the fingerprint is
    operators  id, feature
    visits     one row for each record, with the time and the version of autotailor that measured it
    imported   rows of other people's tables, with the file that each row came from
    powers     power above idle while operators of a kind run, in watts, where the device has a sensor
"""

import json
import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from autotailor.profiling.device import Fingerprint
from autotailor.profiling.errors import LUTError
from autotailor.profiling.records.limits import (
    MOST_BLOCKS,
    RANGES,
    heap_difference,
    read_feature,
    refusal,
    refusal_of_blocks,
)

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

logger = logging.getLogger(__name__)

SCHEMA = 2
EXTRAS = ("resident_weight_mb", "workspace_mb", "energy_mj")
ORIGIN = ("measured_at", "measured_by")


class Database:
    """A SQLite file with the tables of ``TABLES``. Safe for threads, concurrent processes and crashes."""

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


def _number(name: str, needed: bool = True) -> str:
    """A column that accepts numbers in their range only.

    The type is checked, too, because SQLite stores text in any column and orders it above all numbers.
    """
    limits = RANGES[name]
    kinds = "('integer')" if limits.is_whole else "('integer', 'real')"
    check = f"typeof({name}) IN {kinds} AND {name} BETWEEN {limits.least!r} AND {limits.most!r}"
    if limits.may_lack or not needed:
        return f"{name} REAL CHECK ({name} IS NULL OR {check})"
    return f"{name} {'INTEGER' if limits.is_whole else 'REAL'} NOT NULL CHECK ({check})"


_EXTRAS = ", ".join(_number(name) for name in EXTRAS)
_KEYS = "fingerprint TEXT NOT NULL REFERENCES devices, operator TEXT NOT NULL REFERENCES operators"
_ORIGIN = "measured_at TEXT NOT NULL, measured_by TEXT NOT NULL"

TABLES = {
    "devices": "fingerprint TEXT PRIMARY KEY, facts TEXT NOT NULL CHECK (json_valid(facts))",
    "operators": "id TEXT PRIMARY KEY, feature TEXT NOT NULL CHECK (length(feature) > 1)",
    "visits": f"number INTEGER PRIMARY KEY, {_KEYS}, blocks TEXT NOT NULL "
    "CHECK (json_valid(blocks) AND json_type(blocks) = 'array' AND "
    f"json_array_length(blocks) BETWEEN 1 AND {MOST_BLOCKS} AND blocks NOT GLOB '*[^][0-9eE+., -]*' "
    f"AND instr(substr(blocks, 2), '[') = 0), "
    f"{_number('anchor_ms')}, {_number('passes')}, {_number('seconds')}, {_EXTRAS}, {_ORIGIN}",
    "imported": f"{_KEYS}, {_number('latency_ms')}, {_number('standard_error')}, {_number('repeats')}, "
    f"{_number('anchor_ms', needed=False)}, {_EXTRAS}, {_ORIGIN}, source TEXT NOT NULL DEFAULT '', "
    "PRIMARY KEY (fingerprint, operator)",
    "powers": f"fingerprint TEXT NOT NULL REFERENCES devices, kind TEXT NOT NULL, {_number('watts')}, "
    "measured_at TEXT NOT NULL, PRIMARY KEY (fingerprint, kind)",
}
INDEX = "CREATE INDEX visits_of_an_operator ON visits (fingerprint, operator)"


def prepare(database: sqlite3.Connection, path: Path) -> None:
    """Makes the tables of a new store, and takes over those of an older schema. The caller has begun a transaction.

    Raises:
        LUTError: a newer version wrote the store.
    """
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version == SCHEMA:
        return
    if version > SCHEMA or version < 0:
        raise LUTError(
            f"LUT store {path}: it has schema {version} of a newer autotailor, but this one reads schema {SCHEMA} and "
            "older ones; upgrade autotailor, or set profile.store to another folder"
        )
    if version == 0:
        for name, columns in TABLES.items():
            database.execute(f"CREATE TABLE {name} ({columns})")
        database.execute(INDEX)
    else:
        _take_over(database, path)
    database.execute(f"PRAGMA user_version = {SCHEMA}")


def _take_over(database: sqlite3.Connection, path: Path) -> None:
    """Copies the rows of schema 1 that make sense, and warns of those that do not."""
    present = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    database.execute("PRAGMA defer_foreign_keys = ON")
    database.execute("DROP INDEX IF EXISTS visits_of_an_operator")
    for name in TABLES:
        if name in present:
            database.execute(f"ALTER TABLE {name} RENAME TO {name}_1")
    for name, columns in TABLES.items():
        database.execute(f"CREATE TABLE {name} ({columns})")
    ids: dict[str, set[str]] = {"devices": set(), "operators": set()}
    dropped = {name: _copy(database, name, partial(_is_sound, name, ids), ids) for name in TABLES if name in present}
    for name in reversed(TABLES):
        database.execute(f"DROP TABLE IF EXISTS {name}_1")
    database.execute(INDEX)
    if lost := ", ".join(f"{count} of {name}" for name, count in dropped.items() if count):
        logger.warning(
            "LUT store %s: rows were dropped, because they hold values that are no numbers or out of range (%s); the "
            "rule profile measures missing operators again",
            path,
            lost,
        )


def _copy(
    database: sqlite3.Connection,
    table: str,
    is_sound: Callable[[dict[str, Any]], bool],
    ids: Mapping[str, set[str]],
) -> int:
    """Copies the sound rows of a table; returns how many rows were dropped."""
    cursor = database.execute(f"SELECT * FROM {table}_1")
    columns = [column[0] for column in cursor.description]
    rows, dropped = [], 0
    for values in cursor:
        row = dict(zip(columns, values, strict=True))
        for name in EXTRAS:
            if name in row and not RANGES[name].has(row[name]):  # the row's latency may still be right
                row[name] = heap_difference(row[name]) if isinstance(row[name], float) else None
        if not is_sound(row):
            dropped += 1
            continue
        if table in ids:
            ids[table].add(values[0])
        rows.append(tuple(row.values()))
    marks = ", ".join("?" * len(columns))
    database.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)
    return dropped


def _is_sound(table: str, ids: Mapping[str, set[str]], row: Mapping[str, Any]) -> bool:
    """Whether a row of schema 1 makes sense and refers to devices and operators of ``ids`` only."""
    try:
        if table == "devices":
            Fingerprint.from_json(row["facts"])
        elif table == "operators":
            read_feature(row["feature"])
        else:
            _check_measurement(row, ids)
    except (ValueError, TypeError, RecursionError):
        return False
    return True


def _check_measurement(row: Mapping[str, Any], ids: Mapping[str, set[str]]) -> None:
    """Raises ValueError or TypeError for a visit, an imported row or a power that makes no sense."""
    numbers = {key: value for key, value in row.items() if key != "anchor_ms" or value is not None or "blocks" in row}
    reason = refusal(numbers) or ("blocks" in row and refusal_of_blocks(json.loads(row["blocks"])))
    texts: Sequence[object] = [row.get(name, "") for name in (*ORIGIN, "kind")]
    if reason or not all(isinstance(text, str) for text in texts):
        raise ValueError(reason or "no text")
    if row["fingerprint"] not in ids["devices"] or ("operator" in row and row["operator"] not in ids["operators"]):
        raise ValueError("it refers to an unknown device or operator")
