"""Pictures without labels: a folder of pictures is enough."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import numpy as np
import pytest

from autotailor import data
from autotailor.data.labels import UNKNOWN
from autotailor.data.pictures.layout import is_flat
from autotailor.data.splits import check_labels
from autotailor.task import score_of
from picture_files import encoded, photo, section


@pytest.fixture
def flat(tmp_path: Path) -> Path:
    """Twenty different pictures in one folder, one of them twice."""
    folder = tmp_path / "flat"
    folder.mkdir()
    for i in range(20):
        (folder / f"{i:02}.png").write_bytes(encoded(photo(i), "PNG"))
    shutil.copy(folder / "00.png", folder / "again.png")
    return folder


def test_a_flat_folder_is_divided_and_has_no_labels(flat: Path) -> None:
    splits = data.load(section(flat, labels=False))
    assert (splits.labelled, splits.num_classes, score_of(splits).name) == (False, 0, "agreement")
    assert sorted([len(splits.train), len(splits.validation), len(splits.test)])[:2] == [2, 2]
    assert len(splits.train) + len(splits.validation) + len(splits.test) == 21
    for images, labels in splits.train.batches(0, 4):
        assert images.shape == (4, 3, 16, 16)
        assert labels.tolist() == [UNKNOWN] * 4
    with pytest.raises(data.DataError, match=r"2 of 2 images have no label; accuracy\.with_labels"):
        check_labels(splits.validation)


def test_copies_of_a_picture_are_in_one_part(flat: Path) -> None:
    for seed in range(5):
        splits = data.load(section(flat, labels=False, seed=seed))
        groups = [splits.train.pictures.groups, splits.validation.groups, splits.test.groups]  # type: ignore[attr-defined]
        assert sum(len(np.unique(part)) for part in groups) == len(np.unique(np.concatenate(groups))) == 20


def test_subfolders_are_no_classes_and_parts_are_parts(flat: Path, tmp_path: Path) -> None:
    nested = tmp_path / "camera"
    for name in ("2024/may", "2025/june"):
        shutil.copytree(flat, nested / name)
    assert len(data.load(section(nested, labels=False, fractions=[0.5, 0.25, 0.25])).train) >= 18
    parts = tmp_path / "parts"
    for name in ("train", "val", "test"):
        shutil.copytree(flat, parts / name)
    splits = data.load(section(parts, labels=False))
    assert [len(part) for part in (splits.train, splits.validation, splits.test)] == [21, 21, 21]
    assert data.classes(section(parts, labels=False)) is None


def test_equal_pictures_in_two_subfolders_are_no_contradiction(
    flat: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a", "b"):
        shutil.copytree(flat, tmp_path / "two" / name)
    with caplog.at_level(logging.WARNING):
        data.verify(section(tmp_path / "two", labels=False))
    assert not caplog.records


def test_a_flat_folder_is_recognised(flat: Path, tmp_path: Path, root: Path) -> None:
    assert is_flat(flat)
    assert not is_flat(root)
    for name in ("train", "val"):
        shutil.copytree(flat, tmp_path / "parts" / name)
    assert is_flat(tmp_path / "parts")
    shutil.copytree(flat, tmp_path / "parts" / "cat")
    assert not is_flat(tmp_path / "parts")
    (tmp_path / "empty").mkdir()
    assert not is_flat(tmp_path / "empty")


def test_the_remedies_are_named(flat: Path, tmp_path: Path) -> None:
    with pytest.raises(data.DataError, match=r"no class folders.*set data\.labels to false"):
        data.check(section(flat))
    (tmp_path / "empty").mkdir()
    with pytest.raises(data.DataError, match=r"no picture .* lies there"):
        data.check(section(tmp_path / "empty", labels=False))
    (tmp_path / "empty" / "1.png").write_bytes(encoded(photo(), "PNG"))
    with pytest.raises(data.DataError, match=r"there are 1 different pictures, too few to divide them into 3 parts"):
        data.load(section(tmp_path / "empty", labels=False))
    with pytest.raises(data.DataError, match=r"data\.labels: expected true or false, not 'no'"):
        data.check(section(flat, labels="no"))


def test_labels_that_are_there_change_no_fingerprint_of_earlier_versions(root: Path) -> None:
    one, same, other = (data.load(section(root, **more)) for more in ({}, {"labels": True}, {"labels": False}))
    assert one.fingerprint == same.fingerprint != other.fingerprint
