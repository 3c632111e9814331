"""Sets of images in memory, batches, and resizing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

import tiny_data
from autotailor.data import DataError, resize
from autotailor.data.splits import Shard, TensorEvaluationSet, TrainStream, check_batches
from autotailor.finetuning.training.later_epochs import LaterEpochs

IMAGES = torch.arange(7 * 3 * 4 * 4, dtype=torch.float32).reshape(7, 3, 4, 4)


@pytest.mark.parametrize("batch_size", [1, 3, 7, 100])
def test_batches_are_all_images_in_their_order(batch_size: int) -> None:
    images, labels = zip(*TensorEvaluationSet(IMAGES, range(7), [0] * 7).batches(batch_size), strict=True)
    assert torch.equal(torch.cat(images), IMAGES)
    assert torch.cat(labels).tolist() == list(range(7))
    assert {len(batch) for batch in labels[:-1]} <= {batch_size}


@pytest.mark.parametrize("count", [1, 2, 3])
def test_shards_are_equally_large_and_lie_one_behind_the_other(count: int) -> None:
    parts = [Shard(number, count).of(range(7)) for number in range(count)]
    assert {len(part) for part in parts} == {7 // count}
    assert [item for part in parts for item in part] == list(range(7 - 7 % count))


@pytest.mark.parametrize(
    "stream", [tiny_data.TinyStream(), LaterEpochs(tiny_data.TinyStream(), 3)], ids=["any", "later"]
)
def test_shards_of_a_batch_have_its_images(stream: TrainStream) -> None:
    whole = list(stream.batches(1, 16, start=1))
    parts = [list(stream.shards(1, 16, 1, Shard(number, 4))) for number in range(4)]
    for place, (images, labels) in enumerate(whole):
        assert torch.equal(torch.cat([part[place][0] for part in parts]), images)
        assert torch.equal(torch.cat([part[place][1] for part in parts]), labels)
    assert [len(part) for part in parts] == [len(whole)] * 4 == [2] * 4


def test_labels_and_groups_are_as_many_as_images() -> None:
    with pytest.raises(DataError, match="7 images, 6 labels, 7 groups"):
        TensorEvaluationSet(IMAGES, range(6), range(7))


@pytest.mark.parametrize("arguments", [(0,), (1, -1), (1, 0, -1)])
def test_batches_that_cannot_be_are_refused(arguments: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match="batch_size >= 1, epoch >= 0 and start >= 0"):
        check_batches(*arguments)


@pytest.mark.parametrize(("side", "resolution"), [(32, 20), (24, 7), (16, 24)])
def test_images_are_resized_as_pillow_resizes_them(side: int, resolution: int) -> None:
    pixels = np.random.default_rng(0).random((3, side, side)).astype(np.float32)
    expected = [
        np.asarray(Image.fromarray(channel).resize((resolution,) * 2, Image.Resampling.BILINEAR)) for channel in pixels
    ]
    found = resize(torch.from_numpy(pixels)[None], resolution)[0]
    np.testing.assert_allclose(found.numpy(), np.stack(expected), atol=1e-5)


def test_images_of_the_right_size_are_handed_on() -> None:
    assert resize(IMAGES, 4) is IMAGES
    with pytest.raises(DataError, match="resized to 0 pixels"):
        resize(IMAGES, 0)
