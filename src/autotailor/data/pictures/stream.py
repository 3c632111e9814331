"""Streams of pictures: random crops and flips from a seed for training, a centre crop for evaluation."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import Dataset as TorchDataset

from autotailor.data.augmentation.policy import Policy
from autotailor.data.labels import UNKNOWN, scaled
from autotailor.data.pictures.cache import GIB, identity, keep, remembered
from autotailor.data.pictures.config import PictureConfig
from autotailor.data.pictures.reduced import Reduced
from autotailor.data.splits import (
    READ,
    WHOLE,
    Batch,
    DataSplits,
    EvaluationSet,
    Shard,
    TensorEvaluationSet,
    TrainStream,
    check_batches,
    whole,
)
from autotailor.data.workers import TrainingLoader, batches

ORDER, AUGMENT = range(2)  # seed words that keep the random streams apart
NEAREST = "nearest"
"""How masks change their size."""


@dataclass(frozen=True)
class Pictures:
    """Pictures that several processes or threads may open by number at once.

    Attributes:
        open: from a number to an RGB PIL image.
        labels: ``[n]``, or 0 or 1 for each class, ``[n, classes]``; ``UNKNOWN`` where a picture has none. Of pictures
            with boxes ``[n, boxes, 6]``, see ``labels.BOX``.
        groups: ``[n]``; pictures whose files are known to be equal have the same group.
        masks: from a number to the class of each pixel of a picture, a PIL image of mode L as large as the picture;
            None where labels are no maps.
    """

    open: Callable[[int], Any]
    labels: npt.NDArray[Any]
    groups: npt.NDArray[np.int64]
    masks: Callable[[int], Any] | None = None

    def part(self, positions: npt.NDArray[np.int64]) -> Pictures:
        """The pictures at some positions, numbered anew."""
        masks = None if self.masks is None else _Part(self.masks, positions)
        return Pictures(_Part(self.open, positions), self.labels[positions], self.groups[positions], masks)


@dataclass(frozen=True, eq=False)
class _Part:
    """Opens some of a list's pictures. Processes that open pictures get copies of objects, hence a class."""

    open: Callable[[int], Any]
    ids: npt.NDArray[np.int64]

    def __call__(self, number: int) -> Any:
        return self.open(int(self.ids[number]))

    def identity(self, number: int) -> str:
        return identity(self.open, int(self.ids[number]))


class _Items(TorchDataset[tuple[torch.Tensor, int | torch.Tensor]]):
    """Training pictures by (epoch, position in the epoch, number of the picture), as ``training_image`` makes them.

    Where pictures have masks or boxes, the label of a picture is its mask, or its boxes, cropped and flipped as the
    picture is.
    """

    def __init__(self, config: PictureConfig, pictures: Pictures, policy: Policy | None) -> None:
        self._config, self._labels, self._policy = config, pictures.labels, policy
        self._opened = [Reduced(config, each) for each in (pictures.open, pictures.masks) if each is not None]

    def __getitem__(self, key: tuple[int, int, int]) -> tuple[torch.Tensor, int | torch.Tensor]:
        epoch, position, number = key
        opened, label = [each(number) for each in self._opened], self._labels[number]
        if label.ndim == 2:
            opened.append(_boxes(label, opened[0].size))
        image, *places = _training(self._config, opened, epoch, position, self._policy)
        if label.ndim == 2:
            return image, _boxes_inside(places[0], label)
        if places:
            return image, places[0]
        return image, torch.from_numpy(label).float() if label.ndim else int(label)


def training_image(
    config: PictureConfig, picture: Any, epoch: int, position: int, policy: Policy | None = None
) -> torch.Tensor:
    """A training image ``[3, R, R]``: cropped and flipped by (seed, epoch, position in the epoch), and normalised.

    A policy changes the image between these steps; without one, the crop and the flip are the same.
    """
    return _training(config, [picture], epoch, position, policy)[0]


def _training(
    config: PictureConfig, opened: Sequence[Any], epoch: int, position: int, policy: Policy | None
) -> list[torch.Tensor]:
    """A training image and, where the picture comes with its mask, the class of each pixel, uint8 ``[R, R]``.

    Boxes that come with a picture return as shares of the image's sides ``[boxes, 4]``.
    """
    from torchvision.transforms.v2 import functional

    random = np.random.default_rng([config.seed, AUGMENT, epoch, position])
    cropped, *places = _training_crop(config, opened, random)

    def normalise(picture: Any) -> torch.Tensor:
        return _normalised(config, _scaled(functional.pil_to_tensor(picture)))

    image = normalise(cropped) if policy is None else policy(cropped, normalise, epoch, position)
    return [
        image,
        *(
            each / config.resolution if isinstance(each, torch.Tensor) else functional.pil_to_tensor(each)[0]
            for each in places
        ),
    ]


def _boxes(label: npt.NDArray[Any], size: tuple[int, int]) -> torch.Tensor:
    """The boxes of a picture of some width and height, in pixels, as torchvision's transforms know them."""
    from torchvision.tv_tensors import BoundingBoxes, BoundingBoxFormat

    edges = torch.from_numpy(label[:, :4]) * torch.tensor([*size, *size])
    return BoundingBoxes(edges, format=BoundingBoxFormat.XYXY, canvas_size=size[::-1])  # type: ignore[call-overload, no-any-return]


def _boxes_inside(edges: torch.Tensor, label: npt.NDArray[Any]) -> torch.Tensor:
    """The boxes of a training image; those outside the crop, and crowds, have no class."""
    boxes = torch.from_numpy(label).clone()
    boxes[:, :4] = edges.clamp(0, 1)
    is_gone = (boxes[:, 2:4] - boxes[:, :2] <= 0).any(1) | (boxes[:, 5] > 0)
    boxes[is_gone, 4] = UNKNOWN
    return boxes


class _CentreCrops(TorchDataset[tuple[torch.Tensor, int | torch.Tensor]]):
    """All pictures, cropped as for evaluation and not normalised: uint8 ``[3, R, R]``, of masks ``[1, R, R]``."""

    def __init__(self, config: PictureConfig, pictures: Pictures, interpolation: str = "") -> None:
        is_small = 3 * len(pictures.labels) * config.resolution**2 <= config.memory_gib * GIB
        self._config, self._pictures = config if is_small else replace(config, cache=""), pictures
        self._interpolation = interpolation or config.interpolation

    def __len__(self) -> int:
        return len(self._pictures.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int | torch.Tensor]:
        label, config, opened = self._pictures.labels[index], self._config, self._pictures.open
        interpolation = self._interpolation
        how = f"centre {config.crop} at {config.resolution} pixels, {interpolation}"
        pixels = remembered(
            config, identity(opened, index), how, lambda: _centre_crop(config, opened(index), interpolation).numpy()
        )
        return torch.from_numpy(pixels), torch.from_numpy(label) if label.ndim else int(label)


def centre(config: PictureConfig, image: Any) -> torch.Tensor:
    """A picture, cropped as for evaluation and not normalised: ``[3, R, R]``, 0 to 1."""
    return _scaled(_centre_crop(config, image, config.interpolation))


def _centre_crop(config: PictureConfig, image: Any, interpolation: str) -> torch.Tensor:
    from torchvision.transforms.v2 import functional

    mode = functional.InterpolationMode(interpolation)
    size = [round(config.resolution / config.crop)] if config.crop else [config.resolution] * 2
    small = functional.resize(image, size, mode, antialias=True)
    pixels: torch.Tensor = functional.pil_to_tensor(functional.center_crop(small, [config.resolution] * 2))
    return pixels


def _training_crop(config: PictureConfig, opened: Sequence[Any], random: np.random.Generator) -> list[Any]:
    """A PIL image of R times R pixels, cropped and flipped as for training, and its mask or boxes, if any, likewise.

    A mask is a PIL image, too, of which a change of size takes the nearest pixel: torchvision's ``tv_tensors.Mask``
    takes the one at the corner, half a pixel of the result away from the picture.
    """
    from torchvision.transforms.v2 import functional

    width, height = opened[0].size
    box = _crop(random, width, height, config.scale)
    crops = [
        functional.resized_crop(
            each, *box, [config.resolution] * 2, functional.InterpolationMode(interpolation), antialias=True
        )
        for each, interpolation in zip(opened, (config.interpolation, NEAREST), strict=False)
    ]
    if config.flip and random.random() < 0.5:
        crops = [functional.horizontal_flip(each) for each in crops]
    return crops


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

    def __init__(self, config: PictureConfig, pictures: Pictures, policy: Policy | None = None) -> None:
        self.config, self.pictures = config, pictures
        self._loader = TrainingLoader(_Items(config, pictures, policy), config.workers)

    def __len__(self) -> int:
        """Images per epoch."""
        return len(self.pictures.labels)

    def augmented(self, policy: Policy) -> PictureStream:
        """The same pictures in the same order, changed by a policy where they are opened."""
        return PictureStream(self.config, self.pictures, policy)

    def batches(self, epoch: int, batch_size: int, start: int = 0) -> Iterator[Batch]:
        """See TrainStream."""
        return self.shards(epoch, batch_size, start)

    def shards(self, epoch: int, batch_size: int, start: int = 0, shard: Shard = WHOLE) -> Iterator[Batch]:
        """See TrainStream."""
        check_batches(batch_size, epoch, start)
        order = np.random.default_rng([self.config.seed, ORDER, epoch]).permutation(len(self))
        size = min(batch_size, len(self))
        places = (range(number * size, (number + 1) * size) for number in range(start, self.num_batches(batch_size)))
        keys = ([(epoch, place, int(order[place])) for place in shard.of(part)] for part in places)
        for images, labels in self._loader.batches(keys):
            yield images, whole(labels)


class PictureSet(EvaluationSet):
    """Held-out pictures; equal files are one group.

    Pictures are opened once: hundreds of SubNets read the same set, and opening a set takes as long as running some
    SubNets on it. ``pictures.cache`` keeps what was opened in memory or on disk.
    """

    def __init__(self, config: PictureConfig, pictures: Pictures) -> None:
        self.config, self.pictures = config, pictures
        self.groups, self.labels, self.task = pictures.groups, pictures.labels, config.judge
        self._kept: TensorEvaluationSet | None = None
        self._can_keep = True
        self._opening = threading.Lock()

    def part(self, positions: npt.NDArray[np.int64]) -> EvaluationSet:
        """See EvaluationSet; pictures that this set has not opened are opened by the part, for itself alone."""
        part = PictureSet(self.config, self.pictures.part(positions))
        part._kept = self._kept.part(positions) if self._kept else None
        return part

    def over(self, background: str) -> EvaluationSet | None:
        """See EvaluationSet; a set over another background opens the pictures anew, and keeps them in memory alone."""
        opened = _over(self.pictures.open, background)
        if opened is None or background == self.config.background:
            return None if opened is None else self
        config = replace(self.config, background=background, cache="")
        return PictureSet(config, replace(self.pictures, open=opened))

    def batches(self, batch_size: int) -> Iterator[Batch]:
        """See EvaluationSet."""
        check_batches(batch_size)
        for pixels, labels in self._pixels(batch_size):
            yield _normalised(self.config, _scaled(pixels)), whole(labels)

    def _pixels(self, batch_size: int) -> Iterator[Batch]:
        """Batches of pixels, 0 to 255, from the cache or, where there is none, from the files."""
        crops = _CentreCrops(self.config, self.pictures)
        with self._opening:  # a second thread waits for the first one instead of opening the pictures again
            if self._kept is None and self._can_keep:
                shape = len(self), 3, self.config.resolution, self.config.resolution
                opened = (pixels for pixels, _ in batches(crops, batch_size, self.config.workers))
                pixels = keep(shape, opened, self.config)
                self._can_keep = pixels is not None
                if pixels is not None:
                    self._kept = TensorEvaluationSet(pixels, self.labels, self.groups, self.task)
        yield from self._kept.batches(batch_size) if self._kept else batches(crops, batch_size, self.config.workers)


def _over(opened: Any, background: str) -> Any:
    """What opens pictures over another background; None where ``opened`` knows of no background."""
    if not is_dataclass(opened) or isinstance(opened, type):
        return None
    names = {field.name for field in fields(opened)}
    if "background" in names:
        return replace(opened, **{"background": background})
    inner = _over(getattr(opened, "open", None), background)
    return None if inner is None else replace(opened, **{"open": inner})


def splits(
    config: PictureConfig, num_classes: int, train: Pictures, validation: Pictures, test: Pictures
) -> DataSplits:
    """The three splits of a dataset of pictures; without labels where ``config.labels`` is False."""
    if not config.labels:
        train, validation, test = (_without_labels(pictures) for pictures in (train, validation, test))
    validation, test = (replace(each, labels=_maps(config, each)) for each in (validation, test))
    if config.labels:
        config = replace(config, task=scaled(config.task, train.labels))
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
        crop=config.crop,
        interpolation=config.interpolation,
        background=config.background,
    )


def _without_labels(pictures: Pictures) -> Pictures:
    return replace(pictures, labels=np.full_like(pictures.labels, UNKNOWN), masks=None)


def _maps(config: PictureConfig, pictures: Pictures) -> npt.NDArray[Any]:
    """The masks of pictures, cropped as for evaluation, uint8 ``[n, R, R]``; without masks their labels."""
    if pictures.masks is None:
        return pictures.labels
    masks = _CentreCrops(config, Pictures(pictures.masks, pictures.labels, pictures.groups), NEAREST)
    return torch.cat([maps for maps, _ in batches(masks, READ, config.workers)])[:, 0].numpy()
