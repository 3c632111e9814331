"""``data.fingerprint``: the content of the data, and nothing but the content."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from autotailor import data
from picture_files import section


def test_it_depends_neither_on_times_nor_on_the_place_nor_on_other_parameters(root: Path, tmp_path: Path) -> None:
    before = data.fingerprint(section(root))
    for path in root.rglob("*.png"):
        os.utime(path, (1, 1))
    shutil.copytree(root, tmp_path / "elsewhere")
    (root / "notes.txt").write_text("no picture")
    assert data.fingerprint(section(root, resolution=32)) == before
    assert data.fingerprint(section(tmp_path / "elsewhere", name="other")) == before


@pytest.mark.parametrize("change", ["content", "added", "removed", "renamed", "other class", "other part"])
def test_it_changes_with_every_change_of_the_pictures(root: Path, change: str) -> None:
    before = data.fingerprint(section(root))
    picture = root / "train" / "cat" / "0.png"
    if change == "content":
        changed = bytearray(picture.read_bytes())
        changed[-1] ^= 1
        stamp = picture.stat().st_mtime_ns
        picture.write_bytes(changed)  # as long as before, and as old
        os.utime(picture, ns=(stamp, stamp))
    elif change == "added":
        shutil.copy(picture, picture.with_name("9.png"))
    elif change == "removed":
        picture.unlink()
    else:
        place = {"renamed": "train/cat/9.png", "other class": "train/dog/9.png", "other part": "val/cat/9.png"}
        picture.rename(root / place[change])
    assert data.fingerprint(section(root)) != before


def test_links_that_lead_back_end(root: Path) -> None:
    before = data.fingerprint(section(root))
    (root / "train" / "cat" / "again").symlink_to(root / "train" / "cat")
    assert data.fingerprint(section(root)) == before


def test_the_embedded_digits_are_the_digits_whatever_is_made_of_them() -> None:
    one, two = (data.fingerprint({"name": "digits", "seed": seed}) for seed in (0, 1))
    assert one == two
    assert len(one) == 64


def test_a_torchvision_dataset_is_its_own_files_and_not_its_neighbours(tmp_path: Path) -> None:
    cifar = {"name": "c", "kind": "torchvision", "dataset": "CIFAR10", "root": str(tmp_path), "resolution": 32}
    own = tmp_path / "cifar-10-batches-py"
    own.mkdir()
    (own / "data_batch_1").write_bytes(b"1")
    before = data.fingerprint(cifar)
    (tmp_path / "MNIST").mkdir()
    (tmp_path / "MNIST" / "raw").write_bytes(b"2")
    assert data.fingerprint(cifar) == before
    (own / "data_batch_1").write_bytes(b"3")
    assert data.fingerprint(cifar) != before
    with pytest.raises(data.DataError, match="is not under"):
        data.fingerprint({**cifar, "root": str(tmp_path / "nowhere"), "download": False})


def test_what_was_trained_on_changes_with_the_pictures_and_not_with_their_place(root: Path, tmp_path: Path) -> None:
    before = data.load(section(root)).fingerprint
    shutil.copytree(root, tmp_path / "elsewhere")
    assert data.load(section(tmp_path / "elsewhere", workers=1)).fingerprint == before
    assert data.load(section(root, resolution=32)).fingerprint != before
    (root / "val" / "cat" / "0.png").unlink()
    assert data.load(section(root)).fingerprint != before
