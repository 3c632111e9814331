"""What SQLite says of a store, told with a remedy; only a damaged store is to be moved away."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from autotailor.ir.feature import OperatorFeature
from autotailor.profiling import LUTError, Store
from autotailor.profiling.table import database
from autotailor.profiling.table.database import FILE, explained
from lut_tables import ANCHOR, DEVICE, RELU, TABLE, VISIT, usable

SCHEMA_1 = """
CREATE TABLE devices (fingerprint TEXT PRIMARY KEY, facts TEXT NOT NULL);
CREATE TABLE operators (id TEXT PRIMARY KEY, feature TEXT NOT NULL);
CREATE TABLE visits (
    number INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL REFERENCES devices, operator TEXT NOT NULL REFERENCES operators,
    blocks TEXT NOT NULL, anchor_ms REAL NOT NULL, passes INTEGER NOT NULL, seconds REAL NOT NULL,
    resident_weight_mb REAL, workspace_mb REAL, energy_mj REAL, measured_at TEXT NOT NULL, measured_by TEXT NOT NULL);
CREATE INDEX visits_of_an_operator ON visits (fingerprint, operator);
CREATE TABLE imported (
    fingerprint TEXT NOT NULL REFERENCES devices, operator TEXT NOT NULL REFERENCES operators,
    latency_ms REAL NOT NULL, standard_error REAL NOT NULL, repeats INTEGER NOT NULL, anchor_ms REAL,
    resident_weight_mb REAL, workspace_mb REAL, energy_mj REAL, measured_at TEXT NOT NULL, measured_by TEXT NOT NULL,
    PRIMARY KEY (fingerprint, operator));
PRAGMA user_version = 1;
"""
"""What autotailor made before the constraints."""
VALUES = {
    "visits": {
        "blocks": ["[NaN]", "[1e5, Infinity]", "[]", "7", "", "[[1]]"],
        "anchor_ms": [0, -1, "x", 9e999],
        "passes": [0, 1.5, "x"],
    },
    "imported": {
        "latency_ms": [0, -1.0, "x", 9e999],
        "standard_error": [-1e-9, "x", 9e999],
        "repeats": [0, -5, 1.5],
        "anchor_ms": [0, "x"],
        "workspace_mb": [-1, "x"],
    },
}


def failure(action: Callable[[], object]) -> sqlite3.Error:
    with pytest.raises(sqlite3.Error) as found:
        action()
    return found.value


def test_only_a_damaged_store_is_to_be_moved_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / FILE
    store = Store(tmp_path)
    store.merge(TABLE)
    said = {}
    reader = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    said["readonly"] = failure(lambda: reader.execute("DELETE FROM visits"))
    writer = sqlite3.connect(path, isolation_level=None)
    pages = writer.execute("PRAGMA page_count").fetchone()[0]
    writer.execute(f"PRAGMA max_page_count = {pages}")
    writer.execute("CREATE TEMP TABLE big (a)")
    said["full"] = failure(lambda: writer.execute("UPDATE operators SET feature = hex(randomblob(1000000))"))
    writer.execute("BEGIN IMMEDIATE")
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    said["locked"] = failure(lambda: other.execute("BEGIN IMMEDIATE"))
    said["missing"] = failure(lambda: sqlite3.connect(tmp_path / "no" / "folder" / FILE))
    for name, error in said.items():
        assert "move" not in str(explained(path, error)), name
        assert len(str(explained(path, error)).split(": ")) > 2, name  # there is a remedy
    assert "no space is left" in str(explained(path, said["full"]))
    monkeypatch.setattr("autotailor.profiling.table.database.WAIT_SECONDS", 0.05)
    with pytest.raises(LUTError, match="another process has been writing") as locked:
        store.append([VISIT])
    assert "move" not in str(locked.value)
    for connection in (reader, writer, other):
        connection.close()
    assert database.REMEDIES


def test_a_damaged_store_is_to_be_moved_away(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.register(DEVICE, [OperatorFeature("Relu", ((1, i),), ((1, i),)) for i in range(2000)])
    data = bytearray((tmp_path / FILE).read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    (tmp_path / FILE).write_bytes(data)
    with pytest.raises(LUTError, match="move it away"):
        store.operators()


@pytest.mark.parametrize(
    ("table", "column", "value"), [(t, c, v) for t, columns in VALUES.items() for c, vs in columns.items() for v in vs]
)
def test_the_store_itself_refuses_it(tmp_path: Path, table: str, column: str, value: object) -> None:
    store = Store(tmp_path)
    store.merge(TABLE)
    store.append([VISIT])
    with sqlite3.connect(tmp_path / FILE) as database, pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        database.execute(f"UPDATE {table} SET {column} = ?", (value,))
    database.close()


def old_store(folder: Path) -> sqlite3.Connection:
    """A store of schema 1 with sound rows."""
    folder.mkdir(exist_ok=True)
    database = sqlite3.connect(folder / FILE)
    database.executescript(SCHEMA_1)
    database.execute("INSERT INTO devices VALUES (?, ?)", (DEVICE.id, DEVICE.to_json()))
    database.executemany("INSERT INTO operators VALUES (?, ?)", [(f.id, f.to_json()) for f in (ANCHOR, RELU)])
    for feature in (ANCHOR, RELU):
        visit(database, feature)
    return database


def visit(database: sqlite3.Connection, feature: OperatorFeature, **other: object) -> None:
    row = {"fingerprint": DEVICE.id, "operator": feature.id, "blocks": "[0.5, 0.7]", "anchor_ms": 1.0, "passes": 9}
    row |= {"seconds": 0.5, "workspace_mb": 0.25, "measured_at": "2026-01-01", "measured_by": "1"} | other
    marks = ", ".join("?" * len(row))
    database.execute(f"INSERT INTO visits ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))


def test_a_store_of_before_is_read_and_its_bad_rows_are_dropped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with old_store(tmp_path) as database:
        visit(database, RELU, blocks="[NaN, 1.0]")
        visit(database, RELU, anchor_ms=0.0)
        visit(database, RELU, blocks="[0.9]", workspace_mb=-3.0, resident_weight_mb=-0.002)  # the heap's noise
        database.execute("INSERT INTO operators VALUES ('bad', '[')")
        visit(database, RELU, operator="bad")
        imported = "INSERT INTO imported VALUES (?, ?, ?, 0.1, 3, NULL, NULL, NULL, NULL, '2026', '1')"
        database.execute(imported, (DEVICE.id, ANCHOR.id, 0.0))
        database.execute(imported, (DEVICE.id, RELU.id, 4.0))
    database.close()
    store = Store(tmp_path)
    assert "3 of visits, 1 of imported" in caplog.text
    assert "1 of operators" in caplog.text
    assert [(r.key, r.blocks, r.workspace_mb, r.resident_weight_mb) for r in store.records(DEVICE.id)] == [
        (ANCHOR.id, (0.5, 0.7), 0.25, None),
        (RELU.id, (0.5, 0.7), 0.25, None),
        (RELU.id, (0.9,), None, 0.0),
    ]
    assert list(store.imported(DEVICE.id)) == [RELU.id]
    usable(store)
    store.append([VISIT])
    caplog.clear()
    assert len(Store(tmp_path).records(DEVICE.id)) == 4
    assert caplog.text == ""


def test_a_sound_store_of_before_loses_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    old_store(tmp_path).commit()
    assert len(Store(tmp_path).records(DEVICE.id)) == 2
    assert caplog.text == ""


def test_a_store_of_a_newer_schema_is_left_where_it_is(tmp_path: Path) -> None:
    Store(tmp_path)
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(LUTError, match="schema 99 of a newer autotailor") as error:
        Store(tmp_path)
    assert "move" not in str(error.value)
