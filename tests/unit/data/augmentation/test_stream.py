"""Streams with a policy: any stream, and pictures that are changed where they are opened."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import tiny_data
from autotailor import data
from autotailor.data import DataError, DataSplits
from autotailor.data.augmentation.config import AugmentationConfig
from autotailor.data.augmentation.stream import Augmentable, augmented
from autotailor.data.splits import Shard
from picture_files import encoded, photo

CONFIGS = [
    AugmentationConfig("randaugment", erasing=0.5),
    AugmentationConfig("trivialaugment"),
    AugmentationConfig(erasing=1.0),
]


def digits() -> DataSplits:
    return data.load({"name": "digits", "train_images": 24, "evaluation_images": 10})


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    for number, name in enumerate(("train/cat", "train/dog", "val/cat", "val/dog")):
        (tmp_path / name).mkdir(parents=True)
        for i in range(6):
            (tmp_path / name / f"{i}.png").write_bytes(encoded(photo(100 * number + i, (40, 32)), "PNG"))
    return tmp_path


def folder(root: Path, workers: int = 0) -> DataSplits:
    return data.load({"name": "mine", "kind": "folder", "root": str(root), "resolution": 16, "workers": workers})


def images(splits: DataSplits, config: AugmentationConfig, epoch: int, size: int, start: int = 0) -> torch.Tensor:
    return torch.cat([batch for batch, _ in augmented(splits, config, 3).batches(epoch, size, start)])


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("kind", ["digits", "folder"])
def test_an_image_depends_on_seed_epoch_and_position_alone(
    kind: str, config: AugmentationConfig, pictures: Path
) -> None:
    splits = digits() if kind == "digits" else folder(pictures)
    assert isinstance(splits.train, Augmentable) == (kind == "folder")
    before = torch.get_rng_state()
    whole = images(splits, config, 1, 12)
    assert torch.equal(images(splits, config, 1, 4, start=2), whole[8:])
    assert torch.equal(before, torch.get_rng_state())
    plain, labels = next(splits.train.batches(1, 12))
    assert torch.equal(next(augmented(splits, config, 3).batches(1, 12))[1], labels)
    assert not torch.equal(whole[:12], plain)
    assert not torch.equal(whole[:12], next(augmented(splits, config, 4).batches(1, 12))[0])


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_workers_change_nothing(config: AugmentationConfig, pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = images(folder(pictures), config, 2, 3)
    assert torch.equal(images(folder(pictures, workers=2), config, 2, 3), alone)  # processes
    monkeypatch.setattr("autotailor.data.workers._start_method", lambda: "spawn")
    assert torch.equal(images(folder(pictures, workers=3), config, 2, 3), alone)  # threads


def test_crops_are_those_without_a_policy(pictures: Path) -> None:
    """Outside of the erased rectangle nothing changes."""
    splits = folder(pictures)
    plain, erased = next(splits.train.batches(0, 12))[0], images(splits, AugmentationConfig(erasing=1.0), 0, 12)
    changed = (plain != erased).any(1, keepdim=True).expand_as(plain)
    assert 0.01 < changed.float().mean() < 0.5
    assert not erased[changed].any()


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_parts_of_a_batch_have_the_images_of_the_whole(config: AugmentationConfig, pictures: Path) -> None:
    for splits in (digits(), folder(pictures)):
        stream = augmented(splits, config, 7)
        whole = [image for image, _ in stream.batches(1, 4, start=1)]
        parts = [[image for image, _ in stream.shards(1, 4, 1, Shard(number, 2))] for number in range(2)]
        assert len(whole) == len(parts[0]) == len(parts[1])
        for expected, *found in zip(whole, *parts, strict=True):
            assert torch.equal(torch.cat(found), expected)


def test_without_a_policy_the_stream_is_the_datas() -> None:
    splits = tiny_data.splits()
    assert augmented(splits, AugmentationConfig(mixup=0.2, cutmix=1.0), 0) is splits.train


def test_a_policy_without_strength_changes_only_the_last_bits_of_any_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """The images of digits become pictures of 8 bits and normalised images again."""
    from torchvision.transforms import v2

    monkeypatch.setattr(v2, "TrivialAugmentWide", lambda **_: v2.Identity())
    splits = digits()
    plain, found = next(splits.train.batches(0, 24))[0], images(splits, AugmentationConfig("trivialaugment"), 0, 24)
    assert (plain - found).abs().max() <= 0.51 / 255 / 0.25 + 1e-5
    assert not torch.equal(plain, found)


def signals(root: Path, *shape: int, dtype: type = np.float32) -> DataSplits:
    x = np.random.default_rng(0).integers(0, 256, (40, *shape)).astype(dtype)
    np.savez(root / "signals.npz", x=x, y=np.arange(40) % 2)
    return data.load({"name": "mine", "kind": "arrays", "root": str(root / "signals.npz"), "seed": 0})


@pytest.mark.parametrize("channels", [1, 3, 6])
def test_signals_are_not_distorted_as_pictures(channels: int, tmp_path: Path) -> None:
    for shape in ((channels, 20), (channels, 12, 20)):
        with pytest.raises(DataError, match=r"augmentation\.policy: randaugment .* would destroy signals; set it"):
            augmented(signals(tmp_path, *shape), AugmentationConfig("randaugment"), 0)
    with pytest.raises(DataError, match=r"augmentation\.erasing: signals of height 1 have no rectangle to erase"):
        augmented(signals(tmp_path, channels, 20), AugmentationConfig(erasing=0.5), 0)
    splits = signals(tmp_path, channels, 20)
    assert augmented(splits, AugmentationConfig(mixup=1.0), 0) is splits.train


@pytest.mark.parametrize("channels", [1, 3, 6])
def test_rectangles_of_spectrograms_are_erased(channels: int, tmp_path: Path) -> None:
    splits = signals(tmp_path, channels, 12, 20)
    plain, erased = next(splits.train.batches(0, 32))[0], images(splits, AugmentationConfig(erasing=1.0), 0, 32)
    changed = (plain != erased).any(1, keepdim=True).expand_as(plain)
    assert 0.01 < changed.float().mean() < 0.5
    assert not erased[changed].any()


def test_pictures_of_bytes_in_an_array_are_distorted(tmp_path: Path) -> None:
    splits = signals(tmp_path, 3, 12, 20, dtype=np.uint8)
    found = images(splits, AugmentationConfig("trivialaugment"), 0, 32)
    assert not torch.equal(found, next(splits.train.batches(0, 32))[0])
