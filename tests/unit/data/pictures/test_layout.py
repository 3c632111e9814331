"""Which folders are classes, which are parts, and which files are no pictures."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from autotailor import data
from picture_files import section


def test_files_that_are_no_pictures_by_their_name_are_left_out_aloud(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (root / "cat" / "notes.txt").write_text("about cats")
    (root / "cat" / ".DS_Store").write_text("hidden")
    (root / ".cache").mkdir()
    with caplog.at_level(logging.WARNING):
        splits = data.load(section(root))
    assert splits.num_classes == 2
    assert "1 file is left out, no pictures by their suffix: .txt (1)" in caplog.text


def test_a_class_called_train_is_a_class(root: Path) -> None:
    (root / "cat").rename(root / "train")
    assert data.classes(section(root)) == ("dog", "train")
    assert data.load(section(root)).num_classes == 2
