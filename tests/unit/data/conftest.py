"""Data tests have a cache of their own, which trusts files that were written just now."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotailor.data.files import contents, memory


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path_factory.mktemp("cache") / "contents.sqlite"
    monkeypatch.setattr(memory, "default_path", lambda: path)
    monkeypatch.setattr(contents, "SETTLED_NS", 0)
    return path
