from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from autotailor import data
from autotailor.data.digits.config import DigitsConfig
from autotailor.data.digits.images import split_base_images
from autotailor.data.errors import DataError

SMALL = {"name": "digits", "train_images": 1100, "evaluation_images": 400}


@pytest.fixture(scope="module")
def splits() -> data.DataSplits:
    return data.load(SMALL)


def collect(stream: data.TrainStream, epoch: int, size: int, start: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    batches = list(stream.batches(epoch, size, start))
    return torch.cat([images for images, _ in batches]), torch.cat([labels for _, labels in batches])


def test_base_images_of_the_splits_are_disjoint_and_stratified() -> None:
    parts = split_base_images(DigitsConfig())
    ids = [set(part.ids.tolist()) for part in parts]
    assert not ids[0] & ids[1]
    assert not ids[0] & ids[2]
    assert not ids[1] & ids[2]
    assert sum(map(len, ids)) == 1797
    for part in parts:
        counts = np.bincount(part.labels, minlength=10) / len(part.labels)
        assert counts.min() > 0.09
        assert counts.max() < 0.11


def test_evaluation_sets_have_groups_with_one_label_each_and_the_size_asked_for() -> None:
    full = data.load({"name": "digits"})
    for split in (full.validation, full.test):
        assert len(split) >= 2500
        assert len(split.groups) == len(split)
        assert len({*zip(split.groups, split.labels, strict=True)}) == len(set(split.groups)) >= 355
    assert not set(full.validation.groups) & set(full.test.groups)


def test_images_have_the_declared_form(splits: data.DataSplits) -> None:
    images, labels = next(splits.train.batches(0, 64))
    assert images.shape == (64, 3, 32, 32)
    assert images.dtype == torch.float32
    assert labels.shape == (64,)
    assert labels.dtype == torch.int64
    pixels = images * torch.tensor(splits.std).view(3, 1, 1) + torch.tensor(splits.mean).view(3, 1, 1)
    assert pixels.min() >= -1e-6
    assert pixels.max() <= 1 + 1e-6
    assert sum(len(labels) for _, labels in splits.test.batches(300)) == len(splits.test)


def test_an_image_depends_on_seed_epoch_and_index_alone(splits: data.DataSplits) -> None:
    reference, labels = collect(splits.train, 3, 100)
    for size in (1100, 64):
        images, same = collect(splits.train, 3, size)
        assert torch.equal(images, reference[: len(images)])
        assert torch.equal(same, labels[: len(same)])
    late, _ = collect(splits.train, 3, 100, start=9)
    assert torch.equal(late, reference[900:])
    again, _ = collect(data.load(SMALL).train, 3, 100)
    assert torch.equal(again, reference)
    assert not torch.equal(collect(splits.train, 4, 100)[0], reference)
    assert not torch.equal(collect(data.load({**SMALL, "seed": 1}).train, 3, 100)[0], reference)


def test_every_base_image_is_seen_in_every_epoch_before_one_comes_twice(splits: data.DataSplits) -> None:
    base = split_base_images(DigitsConfig())[0].labels
    _, labels = collect(splits.train, 0, 100)
    assert np.bincount(labels[: len(base)]).tolist() == np.bincount(base).tolist()
    assert np.bincount(labels[-len(base) :]).tolist() != np.bincount(base).tolist()


def test_thread_count_does_not_change_the_images(splits: data.DataSplits) -> None:
    reference, _ = collect(splits.train, 0, 550)
    threads = torch.get_num_threads()
    torch.set_num_threads(3 - min(threads, 2))
    try:
        assert torch.equal(collect(splits.train, 0, 550)[0], reference)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"resolution": 4}, "resolution"),
        ({"train_images": 0}, "train_images"),
        ({"evaluation_images": "many"}, "evaluation_images"),
        ({"fractions": [0.6, 0.6, 0.2]}, "fractions"),
        ({"fractions": [1.0, 0.0, 0.0]}, "fractions"),
        ({"scale": [1.0, 0.5]}, "scale"),
        ({"noise": 0.1}, "noise"),
        ({"rotation": -5}, "rotation"),
        ({"rotations": 5}, "rotations"),
        ({"seed": -1}, "seed"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_parameters_out_of_range_are_refused_by_name(change: dict[str, object], says: str) -> None:
    with pytest.raises(data.DataError, match=says):
        data.load({**SMALL, **change})


@pytest.mark.parametrize("arguments", [(0, 0), (-1, 8), (0, 8, -1)])
def test_batches_out_of_range_are_refused(splits: data.DataSplits, arguments: tuple[int, ...]) -> None:
    with pytest.raises(data.DataError, match="batch_size"):
        next(splits.train.batches(*arguments))


@pytest.mark.parametrize("key", ["scale", "contrast", "noise"])
def test_a_range_without_end_is_refused(key: str) -> None:
    with pytest.raises(DataError, match=rf"{key}: expected \[from, to\] with 0 <=? from <= to, not \(0.5, inf\)"):
        DigitsConfig(**{key: (0.5, math.inf)})
