"""scikit-learn's handwritten digits (real, shipped with the library), distorted into a harder task."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from autotailor.data.distortion import Distortion, distort, generator
from autotailor.data.errors import DataError
from autotailor.data.registry import Dataset, read_config, register
from autotailor.data.splits import Batch, DataSplits, TensorEvaluationSet, TrainStream, check_batches
from autotailor.sections import check_integers

CHUNK = 512  # images distorted at once; part of what (seed, epoch, index) determines
TRAIN, VALIDATION, TEST, ORDER = range(4)  # seed words that keep the random streams apart
MEAN = (0.5, 0.5, 0.5)
STD = (0.25, 0.25, 0.25)
NUM_CLASSES = 10


@dataclass(frozen=True)
class DigitsConfig(Distortion):
    """Parameters of ``digits``, beside the ranges of its distortion.

    Attributes:
        seed: of the split, of the training stream and of the evaluation sets.
        resolution: side of the images, pixels.
        train_images: images per epoch of the training stream.
        evaluation_images: least number of images that validation and test are each expanded to.
        fractions: parts of the base images for training, validation and test.
    """

    name: str = "digits"
    seed: int = 0
    resolution: int = 32
    train_images: int = 4096
    evaluation_images: int = 2500
    fractions: tuple[float, float, float] = (0.6, 0.2, 0.2)

    def __post_init__(self) -> None:
        super().__post_init__()
        least = {"seed": 0, "resolution": 8, "train_images": 1, "evaluation_images": 1}
        check_integers(self, least, "digits", DataError)
        if len(self.fractions) != 3 or min(self.fractions) <= 0 or sum(self.fractions) > 1 + 1e-9:
            raise DataError(
                f"digits fractions: expected three positive parts (train, validation, test) "
                f"that sum to at most 1, not {list(self.fractions)}"
            )

    @property
    def distortion(self) -> Distortion:
        """The ranges alone."""
        return Distortion(**{f.name: getattr(self, f.name) for f in fields(Distortion)})


@dataclass(frozen=True)
class BaseImages:
    """Undistorted digits of one split: ``images`` ``[n, 1, 8, 8]`` in 0..1, ``labels`` and ``ids`` ``[n]``."""

    images: torch.Tensor
    labels: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int64]


def split_base_images(config: DigitsConfig) -> tuple[BaseImages, BaseImages, BaseImages]:
    """Base images of training, validation and test: disjoint, every class in proportion, drawn from the seed."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    labels = np.asarray(digits.target, dtype=np.int64)
    random = np.random.default_rng([config.seed, ORDER])
    parts: list[list[npt.NDArray[np.int64]]] = [[], [], []]
    bounds = np.cumsum(config.fractions)
    for label in range(NUM_CLASSES):
        members = random.permutation(np.flatnonzero(labels == label))
        cuts = np.round(bounds * len(members)).astype(int)
        for part, (first, last) in zip(parts, zip([0, *cuts[:-1]], cuts, strict=True), strict=True):
            part.append(members[first:last])
    images = torch.from_numpy(np.asarray(digits.images, dtype=np.float32) / 16.0).unsqueeze(1)
    train, validation, test = (
        BaseImages(images[ids], labels[ids], ids) for ids in (np.sort(np.concatenate(part)) for part in parts)
    )
    return train, validation, test


def _normalize(images: torch.Tensor) -> torch.Tensor:
    return (images - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(STD).view(3, 1, 1)


class DigitsStream(TrainStream):
    """Distorted training digits: each epoch runs through the base images in orders of its own."""

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
        """Base image of each index of an epoch: whole permutations one after another."""
        random = np.random.default_rng([self._config.seed, TRAIN, epoch, ORDER])
        rounds = -(-len(self) // len(self._base.labels))
        return np.concatenate([random.permutation(len(self._base.labels)) for _ in range(rounds)])[: len(self)]

    def _chunk(self, epoch: int, index: int, order: npt.NDArray[np.int64]) -> torch.Tensor:
        """Images of one chunk; always drawn whole, so that its images do not depend on where batches end."""
        members = order[index * CHUNK : (index + 1) * CHUNK]
        random = generator(self._config.seed, TRAIN, epoch, index)
        images = distort(self._base.images[members], self._config.resolution, self._config.distortion, random)
        return _normalize(images)


def _expand(base: BaseImages, config: DigitsConfig, split: int) -> TensorEvaluationSet:
    """At least ``evaluation_images`` distorted images: as many of every base image."""
    copies = -(-config.evaluation_images // len(base.labels))
    pictures = [
        distort(base.images, config.resolution, config.distortion, generator(config.seed, split, copy))
        for copy in range(copies)
    ]
    return TensorEvaluationSet(_normalize(torch.cat(pictures)), np.tile(base.labels, copies), np.tile(base.ids, copies))


class Digits(Dataset):
    """The embedded default."""

    def __init__(self, config: DigitsConfig) -> None:
        self._config = config

    def check(self) -> None:
        """Nothing can be missing: the images come with scikit-learn."""

    def fingerprint(self) -> str:
        """SHA-256 of scikit-learn's table, uncompressed."""
        import sklearn

        table = Path(sklearn.__file__).parent / "datasets" / "data" / "digits.csv.gz"
        return hashlib.sha256(gzip.decompress(table.read_bytes())).hexdigest()

    def load(self) -> DataSplits:
        """See Dataset."""
        train, validation, test = split_base_images(self._config)
        if not min(len(train.ids), len(validation.ids), len(test.ids)):
            raise DataError(f"digits fractions {self._config.fractions} leave a split without images")
        return DataSplits(
            name=self._config.name,
            num_classes=NUM_CLASSES,
            resolution=self._config.resolution,
            train=DigitsStream(train, self._config),
            validation=_expand(validation, self._config, VALIDATION),
            test=_expand(test, self._config, TEST),
            mean=MEAN,
            std=STD,
        )


@register("digits")
def digits(section: Mapping[str, Any]) -> Dataset:
    """Factory of the registry."""
    return Digits(read_config(DigitsConfig, section))
