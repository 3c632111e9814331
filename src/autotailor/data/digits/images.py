"""The images of the dataset ``digits``: base images by split, the training stream, the evaluation sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from autotailor.data.digits import table
from autotailor.data.digits.config import DigitsConfig
from autotailor.data.digits.distorting import distort
from autotailor.data.errors import DataError
from autotailor.data.seeding import generator
from autotailor.data.splits import Batch, DataSplits, TensorEvaluationSet, TrainStream, check_batches

CHUNK = 512  # images distorted at once; another number would give other images for the same seed
TRAIN, VALIDATION, TEST, ORDER = range(4)  # seed words that keep the random streams apart
MEAN = (0.5, 0.5, 0.5)
STD = (0.25, 0.25, 0.25)
NUM_CLASSES = 10


@dataclass(frozen=True)
class BaseImages:
    """Undistorted digits of one split: ``images`` ``[n, 1, 8, 8]`` in 0..1, ``labels`` and ``ids`` ``[n]``."""

    images: torch.Tensor
    labels: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int64]


def split_base_images(config: DigitsConfig) -> tuple[BaseImages, BaseImages, BaseImages]:
    """Base images of training, validation and test: disjoint, every class in proportion, drawn from the seed."""
    pixels, labels = table.digits()
    random = np.random.default_rng([config.seed, ORDER])
    parts: list[list[npt.NDArray[np.int64]]] = [[], [], []]
    bounds = np.cumsum(config.fractions)
    for label in range(NUM_CLASSES):
        members = random.permutation(np.flatnonzero(labels == label))
        cuts = np.round(bounds * len(members)).astype(int)
        for part, (first, last) in zip(parts, zip([0, *cuts[:-1]], cuts, strict=True), strict=True):
            part.append(members[first:last])
    images = torch.from_numpy(pixels / 16.0).unsqueeze(1)
    train, validation, test = (
        BaseImages(images[ids], labels[ids], ids) for ids in (np.sort(np.concatenate(part)) for part in parts)
    )
    return train, validation, test


def _normalize(images: torch.Tensor) -> torch.Tensor:
    return (images - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(STD).view(3, 1, 1)


class DigitsStream(TrainStream):
    """Distorted training digits; each epoch visits the base images in its own random order."""

    def __init__(self, base: BaseImages, config: DigitsConfig) -> None:
        self._base, self._config = base, config

    def __len__(self) -> int:
        """Images per epoch."""
        return self._config.train_images

    def batches(self, epoch: int, batch_size: int, start: int = 0) -> Iterator[Batch]:
        """See TrainStream."""
        check_batches(batch_size, epoch, start)
        order = self._order(epoch)
        size = min(batch_size, len(self))
        chunk, images = -1, torch.empty(0)
        for number in range(start, self.num_batches(batch_size)):
            pieces = []
            for index in range(number * size // CHUNK, ((number + 1) * size - 1) // CHUNK + 1):
                if index != chunk:
                    chunk, images = index, self._chunk(epoch, index, order)
                first = max(number * size - index * CHUNK, 0)
                pieces.append(images[first : (number + 1) * size - index * CHUNK])
            ids = order[number * size : (number + 1) * size]
            yield torch.cat(pieces), torch.from_numpy(self._base.labels[ids])

    def _order(self, epoch: int) -> npt.NDArray[np.int64]:
        """Base image of each index of an epoch: permutations of all base images, one after another."""
        random = np.random.default_rng([self._config.seed, TRAIN, epoch, ORDER])
        rounds = -(-len(self) // len(self._base.labels))
        return np.concatenate([random.permutation(len(self._base.labels)) for _ in range(rounds)])[: len(self)]

    def _chunk(self, epoch: int, index: int, order: npt.NDArray[np.int64]) -> torch.Tensor:
        """Images of one chunk. A chunk is always drawn whole, so that its images do not depend on the batch size."""
        members = order[index * CHUNK : (index + 1) * CHUNK]
        random = generator(self._config.seed, TRAIN, epoch, index)
        images = distort(self._base.images[members], self._config.resolution, self._config.distortion, random)
        return _normalize(images)


def _expand(base: BaseImages, config: DigitsConfig, split: int) -> TensorEvaluationSet:
    """At least ``evaluation_images`` distorted images, the same number from every base image."""
    copies = -(-config.evaluation_images // len(base.labels))
    pictures = [
        distort(base.images, config.resolution, config.distortion, generator(config.seed, split, copy))
        for copy in range(copies)
    ]
    return TensorEvaluationSet(_normalize(torch.cat(pictures)), np.tile(base.labels, copies), np.tile(base.ids, copies))


def splits(config: DigitsConfig) -> DataSplits:
    """The three splits of ``digits``.

    Raises:
        DataError: the fractions leave a split without images.
    """
    train, validation, test = split_base_images(config)
    if not min(len(train.ids), len(validation.ids), len(test.ids)):
        raise DataError(f"digits fractions {list(config.fractions)} leave a split without images; raise the smallest")
    return DataSplits(
        name=config.name,
        num_classes=NUM_CLASSES,
        resolution=config.resolution,
        train=DigitsStream(train, config),
        validation=_expand(validation, config, VALIDATION),
        test=_expand(test, config, TEST),
        mean=MEAN,
        std=STD,
    )
