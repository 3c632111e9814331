"""WebDataset shards, written as tar files: what is read of them, in which order, and what is refused."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from autotailor import data
from autotailor.data.augmentation.config import AugmentationConfig
from autotailor.data.augmentation.stream import augmented
from autotailor.data.labels import UNKNOWN
from autotailor.data.splits import Shard
from picture_files import encoded, photo


def write(path: Path, files: Mapping[str, bytes], mode: str = "w") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def samples(first: int, count: int) -> dict[str, bytes]:
    files = {"__info__/notes.txt": b"no sample"}
    for i in range(first, first + count):
        files[f"some/{i:04}.png"] = encoded(photo(i, (24, 20)), "PNG")
        files[f"some/{i:04}.cls"] = str(i % 3).encode()
    return files


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Four shards of six training samples, two of six validation samples."""
    for number in range(4):
        write(tmp_path / f"train-{number:03}.tar", samples(6 * number, 6))
    for number in range(2):
        write(tmp_path / f"val-{number:03}.tar", samples(100 + 6 * number, 6))
    return tmp_path


def section(shards: Path, **more: object) -> dict[str, object]:
    return {
        "name": "shards", "kind": "webdataset", "train": [f"{shards}/train-{{000..003}}.tar"],
        "validation": [f"{shards}/val-*.tar"], "resolution": 16, "buffer": 8, **more,
    }  # fmt: skip


def test_parts_are_those_of_the_shards(shards: Path) -> None:
    splits = data.load(section(shards))
    assert (splits.num_classes, len(splits.train), len(splits.validation), len(splits.test)) == (3, 24, 6, 6)
    assert not set(splits.validation.groups) & set(splits.test.groups)
    with_test = data.load(section(shards, test=[f"{shards}/val-001.tar"], validation=[f"{shards}/val-000.tar"]))
    assert with_test.test.labels.tolist() == [int(i % 3) for i in range(106, 112)]
    pixels = torch.cat([images for images, _ in with_test.test.batches(4)])
    assert pixels.shape == (6, 3, 16, 16)


def test_a_training_on_shards_goes_on_where_they_were_moved(shards: Path) -> None:
    before = data.load(section(shards))
    images = [images for images, _ in before.train.batches(1, 4)]
    elsewhere = shards.rename(shards.with_name("elsewhere"))
    after = data.load(section(elsewhere))
    assert after.fingerprint == before.fingerprint
    for expected, (found, _) in zip(images, after.train.batches(1, 4), strict=True):
        assert torch.equal(found, expected)
    assert data.load(section(elsewhere, resolution=32)).fingerprint != before.fingerprint
    train, validation = f"{elsewhere}/train-{{000..002}}.tar", f"{elsewhere}/val-*.tar"
    fewer = data.load(section(elsewhere, train=[train], validation=[f"{elsewhere}/train-003.tar", validation]))
    assert fewer.fingerprint != before.fingerprint


def test_an_epoch_has_every_sample_once_in_an_order_of_its_own(shards: Path) -> None:
    stream = data.load(section(shards, flip=False, scale=[1.0, 1.0])).train
    epochs = [[labels for _, labels in stream.batches(epoch, 4)] for epoch in (0, 0, 1)]
    assert torch.equal(torch.cat(epochs[0]), torch.cat(epochs[1]))
    assert not torch.equal(torch.cat(epochs[0]), torch.cat(epochs[2]))
    assert torch.cat(epochs[0]).bincount().tolist() == [8, 8, 8]
    means = torch.cat([images.mean((1, 2, 3)) for images, _ in stream.batches(0, 4)])
    assert len(means.unique()) == 24


def test_parts_of_a_batch_have_the_images_of_the_whole(shards: Path) -> None:
    stream = data.load(section(shards)).train
    whole = [images for images, _ in stream.batches(2, 4, start=1)]
    parts = [[images for images, _ in stream.shards(2, 4, 1, Shard(number, 2))] for number in range(2)]
    assert [len(images) for images in parts[0]] == [2] * len(whole)
    for expected, *found in zip(whole, *parts, strict=True):
        assert torch.equal(torch.cat(found), expected)


@pytest.mark.parametrize("workers", [0, 3])
def test_a_training_goes_on_exactly_inside_an_epoch(shards: Path, workers: int) -> None:
    stream = data.load(section(shards)).train
    whole = torch.cat([images for images, _ in stream.batches(2, 24)])
    again = data.load(section(shards, workers=workers)).train
    rest = torch.cat([images for images, _ in again.batches(2, 5, start=2)])
    assert torch.equal(rest, whole[10:20])
    assert again.num_batches(5) == 4


@pytest.mark.parametrize("workers", [0, 3])
def test_an_augmented_training_goes_on_exactly_inside_an_epoch(shards: Path, workers: int) -> None:
    config = AugmentationConfig("randaugment", erasing=0.5)
    plain, stream = data.load(section(shards)), augmented(data.load(section(shards)), config, 3)
    whole, labels = next(stream.batches(2, 24))
    again = augmented(data.load(section(shards, workers=workers)), config, 3)
    assert torch.equal(torch.cat([images for images, _ in again.batches(2, 5, start=2)]), whole[10:20])
    assert not torch.equal(whole, next(plain.train.batches(2, 24))[0])
    assert torch.equal(labels, next(plain.train.batches(2, 24))[1])


def test_the_buffer_and_the_seed_give_the_order(shards: Path) -> None:
    orders = [
        torch.cat([images for images, _ in data.load(section(shards, **more)).train.batches(0, 24)]).mean((1, 2, 3))
        for more in ({}, {"seed": 1}, {"buffer": 1})
    ]
    assert not torch.equal(orders[0], orders[1])
    assert not torch.equal(orders[0], orders[2])


def test_labels_are_not_needed(shards: Path) -> None:
    pictures = {name: content for name, content in samples(300, 8).items() if name.endswith("png")}
    write(shards / "bare.tar", pictures)
    splits = data.load(section(shards, labels=False, validation=[str(shards / "bare.tar")]))
    assert (splits.labelled, len(splits.validation), set(splits.validation.labels)) == (False, 4, {UNKNOWN})
    assert set(next(splits.train.batches(0, 8))[1].tolist()) == {UNKNOWN}


def test_the_fingerprint_is_that_of_the_content(shards: Path, tmp_path: Path) -> None:
    before = data.fingerprint(section(shards))
    assert data.fingerprint(section(shards, buffer=9)) == before
    write(shards / "train-000.tar", samples(500, 6))
    assert data.fingerprint(section(shards)) != before


def test_what_cannot_be_used_is_refused_by_name(shards: Path) -> None:
    picture = encoded(photo(), "PNG")
    for files, message in (
        ({"a.png": picture, "a.jpg": picture, "a.cls": b"0"}, "sample a has 2 pictures"),
        ({"a.cls": b"0"}, "sample a has 0 pictures"),
        ({"a.png": picture}, r"a\.cls is missing; it must hold the number of the class"),
        ({"a.png": picture, "a.cls": b"ant"}, r"a\.cls holds b'ant'"),
        ({"a.png": picture, "a.cls": b"7"}, r"train has the label 7, but training has 4 different labels"),
        ({"a.png": b"GIF8", "a.cls": b"0"}, r"sample a is cut off or damaged"),
    ):
        write(shards / "train-000.tar", {**samples(0, 6), **files})
        with pytest.raises(data.DataError, match=message):
            data.load(section(shards))
    write(shards / "train-000.tar", samples(0, 6), "w:gz")
    with pytest.raises(data.DataError, match=r"train-000\.tar cannot be read as an uncompressed tar file"):
        data.load(section(shards))
    for more, message in (
        ({"train": []}, r"set data\.train to shards"),
        ({"train": [f"{shards}/nothing-*.tar"]}, r"no file .*nothing-\*\.tar"),
        ({"train": [f"{shards}/train-{{000..004}}.tar"]}, r"no file .*train-004\.tar"),
        ({"train": [f"{shards}/train-*.tar"] * 2}, r"each of them once"),
        ({"buffer": 0}, "buffer"),
        ({"train": "one.tar"}, r"data\.train: expected a list of paths"),
    ):
        with pytest.raises(data.DataError, match=message):
            data.check(section(shards, **more))
