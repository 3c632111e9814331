"""Which folders are classes, which are parts, and which files are no pictures."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from autotailor import data
from autotailor.data import DataError
from autotailor.data.pictures.layout import read_layout
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


def test_folders_of_systems_are_left_out_at_any_depth(root: Path) -> None:
    before = data.load(section(root)).fingerprint
    for name in ("@eaDir", "__MACOSX"):
        thumbnails = root / "cat" / name / "0.png"
        thumbnails.mkdir(parents=True)
        shutil.copy(root / "dog" / "0.png", thumbnails / "SYNOPHOTO_THUMB_M.png")
    assert data.load(section(root)).fingerprint == before
    assert data.load(section(root, labels=False)).fingerprint != before


COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


def test_a_class_that_another_part_spells_with_other_characters_is_one_class(root: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    for part, name in (("train", COMPOSED), ("val", DECOMPOSED)):
        shutil.copytree(root, parts / part)
        (parts / part / "cat").rename(parts / part / name)
    found = read_layout("mine", str(parts))
    assert {listing.classes for listing in found.parts.values()} == {(COMPOSED, "dog")}
    assert all(path.is_file() for path in found.files())


def test_class_folders_whose_names_look_alike_are_refused(root: Path) -> None:
    for name in (COMPOSED, DECOMPOSED):
        shutil.copytree(root / "cat", root / name)
    with pytest.raises(DataError, match=f"two class folders are called {COMPOSED}; .* Move the pictures of one into"):
        read_layout("mine", str(root))


def test_parts_are_found_in_capitals_and_what_lies_beside_them_is_named(
    root: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    parts = tmp_path / "parts"
    for name in ("Train", "Validation", "holdout"):
        shutil.copytree(root, parts / name)
    (parts / "models").mkdir()
    (parts / "models" / "notes.txt").write_text("no picture")
    splits = data.load(section(parts))
    assert splits.num_classes == 2
    assert len(splits.train) == len(list(root.rglob("*.png")))
    (said,) = {entry.getMessage() for entry in caplog.records if "left out; rename" in entry.getMessage()}
    assert "Train is the train part, Validation is the val part, so that pictures in holdout are left out" in said
    caplog.clear()
    data.load(section(parts, labels=False))
    assert "so that pictures in holdout are left out" in caplog.text
    caplog.clear()
    data.load(section(root))
    assert "left out; rename" not in caplog.text


def test_a_class_called_train_is_a_class(root: Path) -> None:
    (root / "cat").rename(root / "train")
    assert data.classes(section(root)) == ("dog", "train")
    assert data.load(section(root)).num_classes == 2


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["dataset/train/a/0.jpg", "dataset/train/b/0.jpg", "dataset/val/a/0.jpg"], r"name .*/dataset as data\.root"),
        (["images/0.jpg", "images/1.jpg", "labels.csv"], r"one class, images; .*\(labels\.csv\).* data\.kind: source"),
        (["train/images/0.jpg", "val/images/0.jpg"], r"has one class, images; name the folder that holds one folder"),
    ],
)
def test_one_class_alone_is_no_task_and_the_message_says_where_classes_may_be(
    files: list[str], message: str, tmp_path: Path
) -> None:
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    with pytest.raises(DataError, match=message):
        read_layout("mine", str(tmp_path))
    assert read_layout("mine", str(tmp_path), labels=False).files()
