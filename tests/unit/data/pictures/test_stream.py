from __future__ import annotations

import errno
import logging
import multiprocessing
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from autotailor import data
from autotailor.data.pictures.cache import GIB
from autotailor.data.pictures.config import PictureConfig
from autotailor.data.pictures.reduced import reduced
from autotailor.data.pictures.stream import PictureSet, PictureStream, training_image
from autotailor.data.splits import TrainStream


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two classes, pictures of several sizes."""
    random = np.random.default_rng(0)
    for part, count in (("train", 6), ("val", 4)):
        for name in ("cat", "dog"):
            folder = tmp_path / part / name
            folder.mkdir(parents=True)
            for i in range(count):
                pixels = random.integers(0, 255, (20 + 5 * i, 40, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(folder / f"{i}.png")
    return tmp_path


def section(root: Path, **more: object) -> dict[str, object]:
    return {"name": "mine", "kind": "folder", "root": str(root), "resolution": 16, **more}


def test_a_folder_gives_three_splits_without_overlap(root: Path) -> None:
    splits = data.load(section(root))
    assert (splits.name, splits.num_classes, len(splits.train)) == ("mine", 2, 12)
    assert len(splits.validation) == len(splits.test) == 4
    assert not set(splits.validation.groups) & set(splits.test.groups)
    images, labels = next(splits.validation.batches(4))
    assert images.shape == (4, 3, 16, 16)
    assert torch.equal(labels, torch.from_numpy(splits.validation.labels))


def test_training_pictures_depend_on_seed_epoch_and_index_alone(root: Path) -> None:
    stream = data.load(section(root)).train
    whole = torch.cat([images for images, _ in stream.batches(1, 12)])
    parts = torch.cat([images for images, _ in stream.batches(1, 3, start=2)])
    assert torch.equal(parts, whole[6:])
    assert not torch.equal(whole, next(stream.batches(2, 12))[0])
    parallel = data.load(section(root, workers=1)).train
    assert torch.equal(next(parallel.batches(1, 12))[0], whole)


def test_training_pictures_are_opened_once_where_memory_allows_and_are_the_same_without(root: Path) -> None:
    opened: list[int] = []

    def streamed(memory_gib: float) -> list[torch.Tensor]:
        stream = data.load(section(root, memory_gib=memory_gib)).train
        assert isinstance(stream, PictureStream)
        of_stream = stream.pictures.open

        def counted(number: int) -> Image.Image:
            opened.append(number)
            picture: Image.Image = of_stream(number)
            return picture

        stream = PictureStream(stream.config, replace(stream.pictures, open=counted))
        return [images for epoch in range(3) for images, _ in stream.batches(epoch, 4)]

    kept = streamed(1.0)
    assert sorted(opened) == list(range(12))
    opened.clear()
    few = streamed(3 * 30 * 40 / GIB)  # one picture
    assert 24 < len(opened) < 36
    opened.clear()
    again = streamed(0.0)
    assert len(opened) == 36
    assert all(torch.equal(a, b) and torch.equal(a, c) for a, b, c in zip(kept, few, again, strict=True))


@pytest.mark.parametrize(("side", "expected"), [(95, 95), (128, 64), (200, 67), (2000, 65)])
def test_large_pictures_are_reduced_to_what_the_smallest_crop_needs(side: int, expected: int) -> None:
    config = PictureConfig("mine", 16, scale=(0.25, 1.0))  # a crop of half the side, of 32 pixels at least
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 255, (side, side, 3), dtype=np.uint8))
    small = reduced(picture, config)
    assert small.size == (expected, expected)
    whole = np.asarray(picture, dtype=float).mean(axis=(0, 1))
    np.testing.assert_allclose(np.asarray(small, dtype=float).mean(axis=(0, 1)), whole, atol=2.0)


def test_a_crop_of_a_reduced_picture_is_nearly_that_of_the_picture() -> None:
    config = PictureConfig("mine", 16)
    rows, columns = np.mgrid[0:400, 0:300]
    waves = [np.sin(rows / 40), np.cos(columns / 30), np.sin((rows + columns) / 50)]
    picture = Image.fromarray(np.uint8(np.stack([127 + 120 * wave for wave in waves], axis=-1)))
    small = reduced(picture, config)
    assert small.size < picture.size
    for epoch in range(5):
        ours, whole = (training_image(config, each, epoch, 0) for each in (small, picture))
        assert (ours - whole).abs().mean() < 0.1  # of a deviation of 1.5


def test_reading_pictures_leaves_the_global_random_state_alone(root: Path) -> None:
    stream = data.load(section(root)).train
    before = torch.get_rng_state()
    list(stream.batches(0, 4))
    assert torch.equal(before, torch.get_rng_state())


def test_a_test_folder_is_used_where_there_is_one(root: Path) -> None:
    (root / "val").rename(root / "test")
    (root / "train").rename(root / "val")
    (root / "test").joinpath("x").mkdir()
    (root / "test" / "x").rmdir()
    (root / "train").mkdir()
    for name in ("cat", "dog"):
        (root / "train" / name).mkdir()
        Image.new("RGB", (20, 20)).save(root / "train" / name / "0.png")
    splits = data.load(section(root))
    assert (len(splits.train), len(splits.validation), len(splits.test)) == (2, 12, 8)


def test_the_background_is_that_of_the_section_and_white_changes_no_fingerprint(root: Path) -> None:
    for number, path in enumerate((root / "val" / "cat").glob("*.png")):
        Image.new("RGBA", (16 + number, 16), (77, 77, 77, 0)).save(path)
    before = data.load(section(root))
    assert data.load(section(root, background="white")).fingerprint == before.fingerprint
    for background, colour in (("white", 1.0), ("black", 0.0), ("drop", 77 / 255)):
        splits = data.load(section(root, background=background, mean=[0.0] * 3, std=[1.0] * 3))
        images = next(splits.validation.batches(1))[0]
        assert images.mean().item() == pytest.approx(colour, abs=1e-3)
        assert splits.preparation.background == background
    with pytest.raises(data.DataError, match=r"background: unknown background 'red'; known are white, black, drop"):
        data.load(section(root, background="red"))


def test_missing_folders_are_named_before_any_work(tmp_path: Path, root: Path) -> None:
    with pytest.raises(data.DataError, match=r"set data\.root"):
        data.check({"name": "mine", "kind": "folder", "resolution": 16})
    with pytest.raises(data.DataError, match=r"nowhere does not exist; put images there"):
        data.check(section(tmp_path / "nowhere"))
    (root / "val" / "dog").rename(root / "val" / "wolf")
    with pytest.raises(data.DataError, match="other classes"):
        data.load(section(root))


def test_an_empty_class_folder_is_named(root: Path) -> None:
    (root / "train" / "empty").mkdir()
    with pytest.raises(data.DataError, match=r"at least one picture.*empty has none"):
        data.load(section(root))


@pytest.mark.parametrize(
    "change",
    [{"resolution": 2}, {"crop": -0.5}, {"std": [1, 1, 0]}, {"scale": [0.9, 0.1]}, {"workers": -1}, {"colour": True}],
    ids=str,
)
def test_parameters_out_of_range_are_refused_by_name(root: Path, change: dict[str, object]) -> None:
    with pytest.raises(data.DataError, match=next(iter(change))):
        data.load(section(root, **change))


def test_missing_torchvision_files_are_named_with_their_place(tmp_path: Path) -> None:
    cifar = {
        "name": "cifar10", "kind": "torchvision", "dataset": "CIFAR10", "root": str(tmp_path), "resolution": 32,
        "download": False,
    }  # fmt: skip
    with pytest.raises(data.DataError, match=r"cifar-10-python.tar.gz.*into .*by hand"):
        data.check(cifar)
    with pytest.raises(data.DataError, match=r"one of .*CIFAR10"):
        data.check({**cifar, "dataset": "CIFAR11"})


def test_a_download_that_fails_is_an_error_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torchvision

    def refuse(self: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(torchvision.datasets.CIFAR10, "download", refuse)
    cifar = {"name": "c", "kind": "torchvision", "dataset": "CIFAR10", "root": str(tmp_path), "resolution": 32}
    with pytest.raises(data.DataError, match=r"could not be downloaded \(no route to host\)"):
        data.check(cifar)


def test_a_torchvision_dataset_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torchvision

    class Fake(torchvision.datasets.VisionDataset):
        def __init__(self, root: str, train: bool = True, download: bool = False) -> None:
            self.targets = [0, 1, 2] * 4

        def __getitem__(self, index: int) -> tuple[Image.Image, int]:
            return Image.new("L", (28, 28), index), self.targets[index]

    monkeypatch.setattr(torchvision.datasets, "Fake", Fake, raising=False)
    splits = data.load({"name": "f", "kind": "torchvision", "dataset": "Fake", "root": str(tmp_path), "resolution": 32})
    assert (splits.num_classes, len(splits.train), len(splits.validation)) == (3, 12, 6)
    assert next(splits.train.batches(0, 4))[0].shape == (4, 3, 32, 32)


def test_labels_of_a_torchvision_dataset_without_a_list_of_them_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torchvision

    opened: list[str] = []

    class Fake:
        def __init__(self, root: str, split: str = "train", download: bool = False) -> None:
            self.split = split

        def __getitem__(self, index: int) -> tuple[Image.Image, int]:
            if index == 12:
                raise IndexError
            opened.append(self.split)
            return Image.new("L", (28, 28), 20 * index), index % 3

    monkeypatch.setattr(torchvision.datasets, "Fake", Fake, raising=False)
    splits = data.load({"name": "f", "kind": "torchvision", "dataset": "Fake", "root": str(tmp_path), "resolution": 32})
    assert opened == ["train"] * 12 + ["test"] * 12
    groups = [part.groups.tolist() for part in (splits.validation, splits.test)]
    assert sorted(group for part in groups for group in part) == list(range(12))
    for part in (splits.validation, splits.test):
        assert part.labels.tolist() == [group % 3 for group in part.groups]
        plain = next(part.batches(6))[0] * torch.tensor(splits.std).view(3, 1, 1) + torch.tensor(splits.mean).view(
            3, 1, 1
        )
        assert (255 * plain.mean((1, 2, 3))).round().tolist() == [20 * group for group in part.groups]


def test_held_out_pictures_are_opened_once(root: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """In memory, above the limit in a file, and only without a folder for the file in each evaluation."""
    validation = data.load(section(root)).validation
    assert isinstance(validation, PictureSet)
    opened: list[int] = []
    pictures = replace(validation.pictures, open=lambda i: (opened.append(i), validation.pictures.open(i))[1])
    found = []
    for more, times in (
        ({}, 1),
        ({"memory_gib": 0, "cache": str(tmp_path / "work" / "deep")}, 1),
        ({"memory_gib": 0}, 2),
    ):
        opened.clear()
        counted = PictureSet(replace(validation.config, **more), pictures)  # type: ignore[arg-type]
        for batch_size in (3, 4):
            found.append([torch.cat(parts) for parts in zip(*counted.batches(batch_size), strict=True)])
        assert len(opened) == times * len(counted)
    assert all(torch.equal(images, found[0][0]) and torch.equal(labels, found[0][1]) for images, labels in found)
    assert list((tmp_path / "work" / "deep").iterdir()) == []  # the file has no name


def test_a_full_disk_is_told_and_costs_time_only(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    expected = torch.cat([images for images, _ in data.load(section(root)).validation.batches(4)])
    splits = data.load(section(root, memory_gib=0, cache=str(tmp_path)))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert torch.equal(torch.cat([images for images, _ in splits.validation.batches(4)]), expected)
    assert caplog.text.count("cannot be kept in") == 1
    assert "No space left on device" in caplog.text


def test_training_processes_live_on_and_two_readers_do_not_meet(root: Path) -> None:
    alone = data.load(section(root)).train
    stream = data.load(section(root, workers=2)).train

    def images(epoch: int, given: TrainStream) -> torch.Tensor:
        return torch.cat([batch for batch, _ in given.batches(epoch, 3)])

    first = images(0, stream)
    workers = {process.pid for process in multiprocessing.active_children()}
    reading = stream.batches(1, 3)
    begun = [next(reading)[0]]
    assert torch.equal(images(2, stream), images(2, alone))  # a second reader while the first one has batches left
    assert torch.equal(torch.cat([*begun, *(batch for batch, _ in reading)]), images(1, alone))
    abandoned = stream.batches(3, 3)
    next(abandoned)
    abandoned.close()
    assert torch.equal(images(4, stream), images(4, alone))
    assert torch.equal(first, images(0, alone))
    assert len(workers) == 2
    assert workers <= {process.pid for process in multiprocessing.active_children()}


@pytest.mark.parametrize("workers", [0, 1])
def test_a_part_of_a_set_opens_its_own_pictures_alone(
    root: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = data.load(section(root, workers=workers)).validation
    images = torch.cat([batch for batch, _ in whole.batches(3)])
    fresh = data.load(section(root, workers=workers)).validation
    assert isinstance(fresh, PictureSet)
    opened: list[int] = []
    opens = fresh.pictures.open
    watched = replace(fresh.pictures, open=lambda number: opened.append(number) or opens(number))
    part = PictureSet(fresh.config, watched if workers == 0 else fresh.pictures).part(np.array([1, 3]))
    assert len(part) == 2
    found, labels = next(part.batches(5))
    assert torch.equal(found, images[[1, 3]])
    assert labels.tolist() == whole.labels[[1, 3]].tolist()
    assert part.groups.tolist() == whole.groups[[1, 3]].tolist()
    assert opened == ([1, 3] if workers == 0 else [])
