"""Tests of data share a folder of pictures, and a cache of their own that trusts files written just now."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from autotailor.data.files import contents, memory


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path_factory.mktemp("cache") / "contents.sqlite"
    monkeypatch.setattr(memory, "default_path", lambda: path)
    monkeypatch.setattr(contents, "SETTLED_NS", 0)
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two classes, three pictures each, in two parts."""
    for number, name in enumerate(("train/cat", "train/dog", "val/cat", "val/dog")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(3):
            Image.new("RGB", (9, 9), (number, i, 0)).save(tmp_path / "photos" / name / f"{i}.png")
    return tmp_path / "photos"
