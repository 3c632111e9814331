"""What SQLite says of a store, told with a remedy; only a damaged store is to be moved away."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from autotailor.ir.feature import OperatorFeature
from autotailor.profiling import LUTError, Store
from autotailor.profiling.table import database
from autotailor.profiling.table.database import FILE, explained
from lut_tables import DEVICE, TABLE, VISIT


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
