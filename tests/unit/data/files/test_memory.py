"""The cache of what files hold."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from autotailor import data
from autotailor.data.files import memory
from picture_files import section


def test_a_cache_that_cannot_be_used_costs_time_only(root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = data.fingerprint(section(root))
    cache.write_bytes(b"no database" * 1000)
    assert data.fingerprint(section(root)) == before
    with sqlite3.connect(cache) as database:
        assert database.execute("SELECT count(*) FROM files").fetchone() == (12,)
    blocked = root / "notes.txt"
    blocked.write_text("a file where the cache folder would be")
    monkeypatch.setattr(memory, "default_path", lambda: blocked / "contents.sqlite")
    assert data.fingerprint(section(root)) == before
