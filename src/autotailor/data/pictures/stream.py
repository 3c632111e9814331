"""Streams of pictures: random crops and flips from a seed for training, a centre crop for evaluation."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import Dataset as TorchDataset

from autotailor.data.labels import UNKNOWN
from autotailor.data.pictures.config import PictureConfig
from autotailor.data.splits import (
    Batch,
    DataSplits,
    EvaluationSet,
    TensorEvaluationSet,
    TrainStream,
    check_batches,
)
from autotailor.data.workers import batches, forked_batches

ORDER, AUGMENT = range(2)  # seed words that keep the random streams apart
KEPT_BYTES = 2**30
"""Evaluation sets up to this size stay in memory: hundreds of SubNets read the same set, and decoding a set takes as
long as running some SubNets on it."""


@dataclass(frozen=True)
class Pictures:
    """Pictures that several processes or threads may open by number at once.

    Attributes:
        open: from a number to an RGB PIL image.
        labels: ``[n]``; ``UNKNOWN`` where a picture has none.
        groups: ``[n]``; pictures whose files are known to be equal have the same group.
    """

    open: Callable[[int], Any]
    labels: npt.NDArray[np.int64]
    groups: npt.NDArray[np.int64]


class _Items(TorchDataset[tuple[torch.Tensor, int]]):
    """Training pictures of given ids, cropped at random and normalised."""

    def __init__(
        self, config: PictureConfig, pictures: Pictures, ids: npt.NDArray[np.int64], epoch: int, first: int
    ) -> None:
        self._config, self._pictures, self._ids = config, pictures, ids
        self._epoch, self._first = epoch, first

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = self._pictures.open(int(self._ids[index]))
        random = np.random.default_rng([self._config.seed, AUGMENT, self._epoch, self._first + index])
        pixels = _augmented(self._config, image, random)
        return _normalised(self._config, pixels), int(self._pictures.labels[self._ids[index]])


class _Centres(TorchDataset[tuple[torch.Tensor, int]]):
    """All pictures, cropped as for evaluation and not normalised: uint8 ``[3, R, R]``."""

    def __init__(self, config: PictureConfig, pictures: Pictures) -> None:
        self._config, self._pictures = config, pictures

    def __len__(self) -> int:
        return len(self._pictures.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return _centre(self._config, self._pictures.open(index)), int(self._pictures.labels[index])


def centre(config: PictureConfig, image: Any) -> torch.Tensor:
    """A picture, cropped as for evaluation and not normalised: ``[3, R, R]``, 0 to 1."""
    return _scaled(_centre(config, image))


def _centre(config: PictureConfig, image: Any) -> torch.Tensor:
    from torchvision.transforms.v2 import functional

    how = functional.InterpolationMode(config.interpolation)
    small = functional.resize(image, [round(config.resolution / config.crop)], how, antialias=True)
    pixels: torch.Tensor = functional.pil_to_tensor(functional.center_crop(small, [config.resolution] * 2))
    return pixels


def _augmented(config: PictureConfig, image: Any, random: np.random.Generator) -> torch.Tensor:
    """A picture, cropped and flipped as for training and not normalised: ``[3, R, R]``, 0 to 1."""
    from torchvision.transforms.v2 import functional

    width, height = image.size
    box, how = _crop(random, width, height, config.scale), functional.InterpolationMode(config.interpolation)
    image = functional.resized_crop(image, *box, [config.resolution] * 2, how, antialias=True)
    if config.flip and random.random() < 0.5:
        image = functional.horizontal_flip(image)
    return _scaled(functional.pil_to_tensor(image))


def _scaled(pixels: torch.Tensor) -> torch.Tensor:
    """Scales pixels of 0 .. 255 to 0 .. 1."""
    from torchvision.transforms.v2 import functional

    scaled: torch.Tensor = functional.to_dtype(pixels, torch.float32, scale=True)
    return scaled


def _normalised(config: PictureConfig, pixels: torch.Tensor) -> torch.Tensor:
    from torchvision.transforms.v2 import functional

    normal: torch.Tensor = functional.normalize(pixels, list(config.mean), list(config.std))
    return normal


def _crop(
    random: np.random.Generator, width: int, height: int, scale: tuple[float, float]
) -> tuple[int, int, int, int]:
    """Top, left, height and width of a crop of random area and of aspect 3:4 to 4:3, limited to the picture."""
    area = width * height * random.uniform(*scale)
    aspect = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
    w = min(width, max(1, round(math.sqrt(area * aspect))))
    h = min(height, max(1, round(math.sqrt(area / aspect))))
    return int(random.integers(0, height - h + 1)), int(random.integers(0, width - w + 1)), h, w


class PictureStream(TrainStream):
    """Training pictures in a new order each epoch."""

    def __init__(self, config: PictureConfig, pictures: Pictures) -> None:
        self.config, self.pictures = config, pictures

    def __len__(self) -> int:
        """Images per epoch."""
        return len(self.pictures.labels)

    def batches(self, epoch: int, batch_size: int, start: int = 0) -> Iterator[Batch]:
        """See TrainStream."""
        check_batches(batch_size, epoch, start)
        order = np.random.default_rng([self.config.seed, ORDER, epoch]).permutation(len(self))
        size = min(batch_size, len(self))
        ids = order[start * size : self.num_batches(batch_size) * size]
        items = _Items(self.config, self.pictures, ids, epoch, start * size)
        yield from forked_batches(items, size, self.config.workers)


class PictureSet(EvaluationSet):
    """Held-out pictures; equal files are one group. A set of at most ``KEPT_BYTES`` of pixels is opened only once."""

    def __init__(self, config: PictureConfig, pictures: Pictures) -> None:
        self.config, self.pictures = config, pictures
        self.groups, self.labels = pictures.groups, pictures.labels
        self._kept: TensorEvaluationSet | None = None
        self._opening = threading.Lock()

    def batches(self, batch_size: int) -> Iterator[Batch]:
        """See EvaluationSet."""
        check_batches(batch_size)
        for pixels, labels in self._centres(batch_size):
            yield _normalised(self.config, _scaled(pixels)), labels

    def _centres(self, batch_size: int) -> Iterator[Batch]:
        """Batches of pixels, 0 to 255, from memory or from the files."""
        centres = _Centres(self.config, self.pictures)
        if len(self) * 3 * self.config.resolution**2 > KEPT_BYTES:
            yield from batches(centres, batch_size, self.config.workers)
            return
        with self._opening:  # a second thread waits for the first one instead of opening the pictures again
            if self._kept is None:
                opened = [pixels for pixels, _ in batches(centres, batch_size, self.config.workers)]
                self._kept = TensorEvaluationSet(torch.cat(opened), self.labels, self.groups)
        yield from self._kept.batches(batch_size)


def splits(
    config: PictureConfig, num_classes: int, train: Pictures, validation: Pictures, test: Pictures
) -> DataSplits:
    """The three splits of a dataset of pictures; without labels where ``config.labels`` is False."""
    if not config.labels:
        train, validation, test = (_without_labels(pictures) for pictures in (train, validation, test))
    return DataSplits(
        name=config.name,
        num_classes=num_classes if config.labels else 0,
        resolution=config.resolution,
        train=PictureStream(config, train),
        validation=PictureSet(config, validation),
        test=PictureSet(config, test),
        mean=config.mean,
        std=config.std,
        labelled=config.labels,
    )


def _without_labels(pictures: Pictures) -> Pictures:
    return replace(pictures, labels=np.full_like(pictures.labels, UNKNOWN))
