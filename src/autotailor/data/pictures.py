"""Pictures that are opened one by one: seeded crops and flips for training, a centre crop for evaluation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from autotailor.data.errors import DataError
from autotailor.data.splits import Batch, DataSplits, EvaluationSet, TrainStream, check_batches

ORDER, AUGMENT, HALVES = range(3)  # seed words that keep the random streams apart


@dataclass(frozen=True)
class PictureConfig:
    """Parameters that all datasets of pictures share.

    Attributes:
        name: for messages and reports.
        resolution: side of the images, pixels.
        seed: of order, augmentation and the division of held-out images.
        mean, std: for each channel, subtracted from and divided into pixels between 0 and 1.
        crop: in evaluation the shorter side is scaled to resolution / crop before the centre is cut out.
        scale: area of the training crop over that of the picture, from and to.
        flip: whether half of the training images are mirrored.
        workers: processes that open pictures; 0 opens them in this one.
    """

    name: str
    resolution: int
    seed: int = 0
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)
    crop: float = 0.875
    scale: tuple[float, float] = (0.35, 1.0)
    flip: bool = True
    workers: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.resolution, int) or self.resolution < 8:
            raise DataError(f"data {self.name}: resolution must be an integer >= 8, not {self.resolution!r}")
        if len(self.mean) != 3 or len(self.std) != 3 or min(self.std) <= 0:
            raise DataError(f"data {self.name}: mean and std need three values each, std above 0")
        if not 0 < self.crop <= 1 or not 0 < self.scale[0] <= self.scale[-1] <= 1 or len(self.scale) != 2:
            raise DataError(f"data {self.name}: crop and both ends of scale must lie in 0 .. 1, scale ascending")
        if self.workers < 0 or self.seed < 0:
            raise DataError(f"data {self.name}: workers and seed must not be negative")


@dataclass(frozen=True)
class Pictures:
    """``open(i)`` returns picture i as an RGB PIL image; ``labels`` has shape ``[n]``."""

    open: Callable[[int], Any]
    labels: npt.NDArray[np.int64]


class _Items(TorchDataset[tuple[torch.Tensor, int]]):
    """Pictures of given ids, cut and normalised; ``epoch`` None means evaluation."""

    def __init__(
        self,
        config: PictureConfig,
        pictures: Pictures,
        ids: npt.NDArray[np.int64],
        epoch: int | None,
        first: int = 0,
    ) -> None:
        self._config, self._pictures, self._ids = config, pictures, ids
        self._epoch, self._first = epoch, first

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        from torchvision.transforms.v2 import functional

        image = self._pictures.open(int(self._ids[index])).convert("RGB")
        size = [self._config.resolution] * 2
        if self._epoch is None:
            short = round(self._config.resolution / self._config.crop)
            image = functional.center_crop(functional.resize(image, [short], antialias=True), size)
        else:
            random = np.random.default_rng([self._config.seed, AUGMENT, self._epoch, self._first + index])
            width, height = image.size
            box = _crop(random, width, height, self._config.scale)
            image = functional.resized_crop(image, *box, size, antialias=True)
            if self._config.flip and random.random() < 0.5:
                image = functional.horizontal_flip(image)
        pixels = functional.to_dtype(functional.pil_to_tensor(image), torch.float32, scale=True)
        normal = functional.normalize(pixels, list(self._config.mean), list(self._config.std))
        return normal, int(self._pictures.labels[self._ids[index]])


def _crop(
    random: np.random.Generator, width: int, height: int, scale: tuple[float, float]
) -> tuple[int, int, int, int]:
    """Top, left, height and width of a crop of random area and of aspect 3:4 to 4:3, cut to the picture."""
    area = width * height * random.uniform(*scale)
    aspect = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
    w = min(width, max(1, round(math.sqrt(area * aspect))))
    h = min(height, max(1, round(math.sqrt(area / aspect))))
    return int(random.integers(0, height - h + 1)), int(random.integers(0, width - w + 1)), h, w


def _loader(items: _Items, config: PictureConfig, batch_size: int) -> Iterator[Batch]:
    loader = DataLoader(
        items, batch_size=batch_size, num_workers=config.workers, generator=torch.Generator().manual_seed(0)
    )
    yield from loader


class PictureStream(TrainStream):
    """Training pictures in a new order each epoch."""

    def __init__(self, config: PictureConfig, pictures: Pictures) -> None:
        self._config, self._pictures = config, pictures

    def __len__(self) -> int:
        """Images per epoch."""
        return len(self._pictures.labels)

    def batches(self, epoch: int, batch_size: int, start: int = 0) -> Iterator[Batch]:
        """See TrainStream."""
        check_batches(batch_size, epoch, start)
        order = np.random.default_rng([self._config.seed, ORDER, epoch]).permutation(len(self))
        size = min(batch_size, len(self))
        ids = order[start * size : self.num_batches(batch_size) * size]
        yield from _loader(_Items(self._config, self._pictures, ids, epoch, start * size), self._config, size)


class PictureSet(EvaluationSet):
    """Held-out pictures; each is a group of its own."""

    def __init__(self, config: PictureConfig, pictures: Pictures, ids: npt.NDArray[np.int64]) -> None:
        self._config, self._pictures = config, pictures
        self.groups = ids
        self.labels = pictures.labels[ids]

    def batches(self, batch_size: int) -> Iterator[Batch]:
        """See EvaluationSet."""
        check_batches(batch_size)
        yield from _loader(_Items(self._config, self._pictures, self.groups, None), self._config, batch_size)


def splits(
    config: PictureConfig, num_classes: int, train: Pictures, held: Pictures, test: Pictures | None
) -> DataSplits:
    """Splits of pictures; without pictures for the test, ``held`` is halved by the seed."""
    every = np.arange(len(held.labels), dtype=np.int64)
    if test is not None:
        validation_set = PictureSet(config, held, every)
        test_set = PictureSet(config, test, np.arange(len(test.labels), dtype=np.int64))
    else:
        mixed = np.random.default_rng([config.seed, HALVES]).permutation(every)
        half = len(every) // 2
        if half < 1:
            raise DataError(f"data {config.name}: at least two held-out images are needed, {len(every)} found")
        validation_set, test_set = (PictureSet(config, held, np.sort(p)) for p in (mixed[:half], mixed[half:]))
    return DataSplits(
        name=config.name,
        num_classes=num_classes,
        resolution=config.resolution,
        train=PictureStream(config, train),
        validation=validation_set,
        test=test_set,
        mean=config.mean,
        std=config.std,
    )
