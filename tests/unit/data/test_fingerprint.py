"""``data.fingerprint``: the content of the data, and nothing but the content."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from PIL import Image

from autotailor import data
from autotailor.data.files import contents, memory


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two classes, three pictures each, in two parts."""
    for number, name in enumerate(("train/cat", "train/dog", "val/cat", "val/dog")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(3):
            Image.new("RGB", (9, 9), (number, i, 0)).save(tmp_path / "photos" / name / f"{i}.png")
    return tmp_path / "photos"


def section(root: Path, **more: object) -> dict[str, object]:
    return {"name": "mine", "kind": "folder", "root": str(root), "resolution": 16, **more}


def read_files(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Which files are read from now on."""
    read: list[bytes] = []
    original = contents.read_content

    def spy(key: bytes, examiner: contents.Examiner | None) -> contents.Content:
        read.append(key)
        return original(key, examiner)

    monkeypatch.setattr(contents, "read_content", spy)
    return read


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


def test_nothing_is_read_twice(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = read_files(monkeypatch)
    before = data.fingerprint(section(root))
    assert len(read) == 12
    assert data.fingerprint(section(root)) == before
    assert len(read) == 12
    os.utime(root / "val" / "cat" / "1.png", (1, 1))
    assert data.fingerprint(section(root)) == before
    assert read[12:] == [os.fsencode(root / "val" / "cat" / "1.png")]


def test_a_file_that_was_just_written_is_not_trusted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "SETTLED_NS", 10**12)
    read = read_files(monkeypatch)
    assert data.fingerprint(section(root)) == data.fingerprint(section(root))
    assert len(read) == 24


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


def test_a_file_that_cannot_be_read_is_named(root: Path) -> None:
    (root / "train" / "cat" / "broken.png").symlink_to("nowhere.png")
    with pytest.raises(data.DataError, match=r"broken\.png: cannot be read \(No such file"):
        data.fingerprint(section(root))


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


def test_a_pass_that_was_interrupted_goes_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "BATCH", 5)
    read, original = [], contents.read_content

    def stop(key: bytes, examiner: contents.Examiner | None) -> contents.Content:
        if len(read) == 7:
            raise KeyboardInterrupt
        read.append(key)
        return original(key, examiner)

    monkeypatch.setattr(contents, "read_content", stop)
    monkeypatch.setattr(contents, "cores", lambda: 1)
    with pytest.raises(KeyboardInterrupt):
        data.fingerprint(section(root))
    monkeypatch.setattr(contents, "read_content", original)
    again = read_files(monkeypatch)
    data.fingerprint(section(root))
    assert len(again) == 7  # of twelve, five were committed
