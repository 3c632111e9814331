"""The interface of every dataset: a training stream, and two evaluation sets with groups of related images."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from autotailor.data.errors import DataError
from autotailor.data.labels import CLASSIFICATION, UNKNOWN, has_numbers, names_outputs
from autotailor.data.preparation import Preparation, Signal

Batch = tuple[torch.Tensor, torch.Tensor]
READ = 256  # images that are read at once
Items = TypeVar("Items", torch.Tensor, range, list[Any])


@dataclass(frozen=True)
class Shard:
    """The part of each batch that one of several processes reads.

    Attributes:
        number: of the part, from 0.
        count: of parts, which are equally large and lie one behind the other in the batch.
    """

    number: int = 0
    count: int = 1

    def of(self, items: Items) -> Items:
        """The part of a batch of n items; the last n modulo ``count`` items belong to no part."""
        size = len(items) // self.count
        return items[self.number * size : (self.number + 1) * size]


WHOLE = Shard()


class TrainStream(ABC):
    """Training images in an order and with augmentations that depend on (seed, epoch, index) alone."""

    @abstractmethod
    def __len__(self) -> int:
        """Images per epoch."""

    @abstractmethod
    def batches(self, epoch: int, batch_size: int, start: int = 0) -> Iterator[Batch]:
        """Batches of one epoch.

        Args:
            epoch: from 0; every epoch has its own order and augmentations.
            batch_size: images per batch; a last, smaller batch is left out unless the epoch has no other.
            start: number of batches to skip, for resuming inside an epoch.

        Yields:
            Normalised images float32 ``[b, 3, R, R]`` and labels int64 ``[b]``, or a share of each class, float32
            ``[b, classes]``, or the class of each pixel (``IGNORED`` where none counts), int64 ``[b, R, R]``, or boxes,
            float32 ``[b, boxes, 6]`` (``labels.BOX``).
        """

    def shards(self, epoch: int, batch_size: int, start: int = 0, shard: Shard = WHOLE) -> Iterator[Batch]:
        """A part of each batch: images and labels as ``batches`` yields them, augmentations included.

        A stream that opens files overrides this method, so that it opens the files of the part alone.

        Args:
            epoch: see ``batches``.
            batch_size: of the whole batches.
            start: see ``batches``.
            shard: the part.
        """
        for images, labels in self.batches(epoch, batch_size, start):
            yield shard.of(images), shard.of(labels)

    def num_batches(self, batch_size: int) -> int:
        """Batches in one epoch."""
        check_batches(batch_size)
        return max(1, len(self) // batch_size)


class EvaluationSet(ABC):
    """A fixed list of images; ``groups[i]`` is the number of the base image that image i was made from.

    A label is the class of an image, or what else the task of the images says (``autotailor.task``): labels have a row
    for each image. It is ``UNKNOWN`` where the image has none; ``accuracy.with_labels`` takes the original network's
    answers, which are whole numbers or, where they are its outputs, floats. Maps of classes are kept as uint8.
    """

    labels: npt.NDArray[Any]
    groups: npt.NDArray[np.int64]
    task: str = CLASSIFICATION

    def __len__(self) -> int:
        """Number of images."""
        return len(self.labels)

    @abstractmethod
    def batches(self, batch_size: int) -> Iterator[Batch]:
        """All images in their fixed order: normalised float32 ``[b, 3, R, R]``, and their labels, int64."""

    def part(self, positions: npt.NDArray[np.int64]) -> EvaluationSet:
        """The images at rising positions as a set of their own; here the whole set is read once, and they are kept."""
        return kept(self, positions)

    def over(self, background: str) -> EvaluationSet | None:
        """The same pictures over another background (``data.background``); None where they are no picture files."""
        return None


@dataclass(frozen=True)
class DataSplits:
    """The three splits of a dataset; the base images of any two are disjoint.

    Attributes:
        name: of the dataset, as in its configuration.
        num_classes: number of classes, whose labels are 0 .. num_classes - 1, or which are right or wrong each; 0 where
            no image has a label.
        resolution: height and width R of every image, pixels.
        train, validation, test: sensitivity and search use validation; reported accuracies come from test.
        mean, std: for each channel, already applied to the images: (pixel in 0..1 - mean) / std.
        fingerprint: canonical text of the dataset's configuration and of the digest of the data's content. Keys that
            do not change the images, such as the folder, are left out.
        labelled: whether the images have labels of their own. Otherwise their labels are ``UNKNOWN``, or the answers of
            the original network, which then teaches alone.
        classes: names in the order of the labels; empty where they are not known.
        crop, interpolation, background: how a picture becomes an image of validation and test, see ``Preparation``.
        signal: how a signal becomes an image; None for pictures.
    """

    name: str
    num_classes: int
    resolution: int
    train: TrainStream
    validation: EvaluationSet
    test: EvaluationSet
    mean: tuple[float, ...]
    std: tuple[float, ...]
    fingerprint: str = ""
    labelled: bool = True
    crop: float = 1.0
    interpolation: str = "bilinear"
    classes: tuple[str, ...] = ()
    background: str = "white"
    signal: Signal | None = None

    def image(self, resolution: int = 0) -> tuple[int, ...]:
        """Channels, height and width of every image, which may be resized to a resolution."""
        side = resolution or self.resolution
        return self.signal.shape if self.signal and not resolution else (len(self.mean), side, side)

    def read(self, resolution: int = 0) -> str:
        """What a network reads, in words: pictures of a resolution, or signals."""
        if self.signal:
            return f"signals [channels, height, length] of {list(self.image(resolution))} numbers"
        return f"RGB images of {resolution or self.resolution} pixels"

    @property
    def has_maps(self) -> bool:
        """Whether training pictures have labels that are maps of classes, or boxes."""
        return self.labelled and self.validation.labels.ndim > 2

    @property
    def preparation(self) -> Preparation:
        """What makes a network's input of a picture, as in validation and test."""
        how = (self.resolution, self.mean, self.std, self.crop, self.interpolation, self.classes, self.background)
        return Preparation(*how, self.signal)


class TensorEvaluationSet(EvaluationSet):
    """An evaluation set in memory."""

    def __init__(
        self, images: torch.Tensor, labels: npt.ArrayLike, groups: npt.ArrayLike, task: str = CLASSIFICATION
    ) -> None:
        self.images, self.task = images, task
        array = np.asarray(labels)
        stays = array.ndim > 2 or has_numbers(task) or not names_outputs(task)  # maps stay as small as they are
        self.labels = array if stays else np.asarray(array, dtype=np.int64)
        self.groups = np.asarray(groups, dtype=np.int64)
        if not len(images) == len(self.labels) == len(self.groups):
            raise DataError(
                f"an evaluation set needs as many labels and groups as images: {len(images)} images, "
                f"{len(self.labels)} labels, {len(self.groups)} groups"
            )

    def part(self, positions: npt.NDArray[np.int64]) -> TensorEvaluationSet:
        """See EvaluationSet."""
        images = self.images[torch.from_numpy(positions)]
        return TensorEvaluationSet(images, self.labels[positions], self.groups[positions], self.task)

    def batches(self, batch_size: int) -> Iterator[Batch]:
        """See EvaluationSet."""
        check_batches(batch_size)
        labels = torch.from_numpy(self.labels)
        for first in range(0, len(self), batch_size):
            yield self.images[first : first + batch_size], whole(labels[first : first + batch_size])


def kept(images: EvaluationSet, positions: npt.NDArray[np.int64]) -> TensorEvaluationSet:
    """The images at rising positions of an evaluation set, in memory; the whole set is read once."""
    chosen, first = [], 0
    for batch, _ in images.batches(READ):
        inside = positions[(positions >= first) & (positions < first + len(batch))] - first
        chosen.append(batch[torch.from_numpy(inside)])
        first += len(batch)
    return TensorEvaluationSet(torch.cat(chosen), images.labels[positions], images.groups[positions], images.task)


def whole(targets: torch.Tensor) -> torch.Tensor:
    """Targets as int64; floating-point numbers stay as they are."""
    return targets if targets.is_floating_point() else targets.long()


def check_batches(batch_size: int, epoch: int = 0, start: int = 0) -> None:
    """Raises DataError unless batch_size >= 1, epoch >= 0 and start >= 0."""
    if batch_size < 1 or epoch < 0 or start < 0:
        raise DataError(
            f"batches need batch_size >= 1, epoch >= 0 and start >= 0, "
            f"not batch_size={batch_size}, epoch={epoch}, start={start}"
        )


def check_labels(images: EvaluationSet) -> None:
    """Raises DataError where an image has no label, because whether an answer is right is then not known."""
    if np.issubdtype(images.labels.dtype, np.integer) and (images.labels == UNKNOWN).any():
        raise DataError(
            f"{int((images.labels == UNKNOWN).sum())} of {len(images)} images have no label; "
            f"accuracy.with_labels(data, original) gives them the answers of the original network"
        )


def resize(images: torch.Tensor, *sides: int) -> torch.Tensor:
    """Images ``[n, channels, h, w]`` to one side, or to a height and a width, antialiased bilinear."""
    if min(sides) < 1:
        raise DataError(f"images cannot be resized to {sides[-1]} pixels; choose a resolution of at least 1")
    size = [sides[0], sides[-1]]
    if list(images.shape[-2:]) == size:
        return images
    return functional.interpolate(images, size, mode="bilinear", antialias=True, align_corners=False)


def sized(images: torch.Tensor, resolution: int) -> torch.Tensor:
    """Images ``[n, 3, h, w]`` in a resolution; 0 leaves their size."""
    return resize(images, resolution) if resolution else images
