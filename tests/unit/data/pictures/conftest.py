"""A folder of pictures that tests of pictures share."""

from __future__ import annotations

from pathlib import Path

import pytest

from picture_files import encoded, photo


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two classes, eight different pictures each, not divided into parts."""
    for number, name in enumerate(("cat", "dog")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(8):
            (tmp_path / "photos" / name / f"{i}.png").write_bytes(encoded(photo(100 * number + i), "PNG"))
    return tmp_path / "photos"
