"""What every dataset promises (``Dataset``, ``DataSplits``), checked where somebody's own dataset may break it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from autotailor.data.errors import DataError
from autotailor.data.labels import BOX, IGNORED, UNKNOWN, has_numbers
from autotailor.data.splits import Batch, DataSplits, EvaluationSet, TrainStream

IMAGES = "normalised images, a float32 tensor [n, channels, height, width]"


def check_splits(name: str, splits: object) -> None:
    """Refuses what is no ``DataSplits``, lacks a part, or has labels that are none of its classes.

    Args:
        name: of the dataset, for the message.
        splits: what ``Dataset.load`` has returned.

    Raises:
        DataError: the message says what was expected.
    """
    if not isinstance(splits, DataSplits):
        raise DataError(f"dataset {name!r}: load returned {type(splits).__name__}, expected DataSplits")
    if not isinstance(splits.train, TrainStream):
        raise DataError(f"dataset {name!r}: train is of {type(splits.train).__name__}, expected a TrainStream")
    for part, images in (("validation", splits.validation), ("test", splits.test)):
        if not isinstance(images, EvaluationSet):
            raise DataError(f"dataset {name!r}: {part} is of {type(images).__name__}, expected an EvaluationSet")
        if not len(images):
            raise DataError(f"dataset {name!r}: {part} holds no image, expected one at least")
        if part == "validation" and len(np.unique(images.groups)) < 2:
            raise DataError(
                f"dataset {name!r}: {part} holds a single picture, which says nothing about how sure an accuracy is; "
                f"give it two at least, or larger shares of the pictures in data.fractions"
            )
        if has_numbers(images.task) and splits.labelled:
            _check_numbers(name, part, images, splits.num_classes)
            continue
        has_boxes = images.labels.ndim == 3 and images.labels.shape[2] == len(BOX) and images.labels.dtype.kind == "f"
        classes = images.labels[..., BOX.index("class")] if has_boxes else images.labels
        counted = classes[classes != (UNKNOWN if has_boxes else IGNORED)] if images.labels.ndim > 2 else classes
        if not counted.size:
            what = ("picture", "boxes") if has_boxes else ("pixel", "masks with classes")
            raise DataError(
                f"dataset {name!r}: no {what[0]} of {part} has a {'box' if has_boxes else 'class'}; give it {what[1]}"
            )
        least, most = int(counted.min()), int(counted.max())
        if images.labels.ndim == 2:
            if splits.labelled and not (0 <= least <= most <= 1 and images.labels.shape[1] == splits.num_classes):
                raise DataError(
                    f"dataset {name!r}: labels of {part} are {list(images.labels.shape)} numbers from {least} to "
                    f"{most}, expected 0 or 1 for each of {splits.num_classes} classes (num_classes)"
                )
        elif splits.labelled and not 0 <= least <= most < splits.num_classes:
            raise DataError(
                f"dataset {name!r}: labels of {part} are from {least} to {most}, expected numbers of classes from 0 to "
                f"{splits.num_classes - 1} (num_classes is {splits.num_classes})"
            )


def _check_numbers(name: str, part: str, images: EvaluationSet, count: int) -> None:
    """Raises DataError unless the labels of a regression are finite numbers ``[n, count]``."""
    labels = images.labels
    if labels.dtype.kind != "f" or labels.shape[1:] != (count,) or not np.isfinite(labels).all():
        raise DataError(
            f"dataset {name!r}: labels of {part} are {labels.dtype} {list(labels.shape)}, expected finite float32 "
            f"[{len(labels)}, {count}] for the task regression; a table beside pictures (data.kind table), arrays and "
            f"Datasets of your own (source) have numbers, folders have classes"
        )


def checked(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Batches of training, each of which a network and a loss can read.

    Raises:
        DataError: images or labels of a batch have another form; the message says which.
    """
    for images, labels in batches:
        check_images(images, "training")
        whole = isinstance(labels, torch.Tensor) and (
            labels.dtype == torch.int64 and (labels.ndim == 1 or labels.shape[1:] == images.shape[2:])
        )
        shares = isinstance(labels, torch.Tensor) and (
            labels.is_floating_point() and (labels.ndim == 2 or labels.shape[2:] == (len(BOX),))
        )
        if not (whole or shares) or len(labels) != len(images):
            raise DataError(
                f"labels of {len(images)} training images are {_in_words(labels)}, expected an int64 tensor "
                f"[{len(images)}] with the number of each image's class, or [{len(images)}, R, R] with that of each "
                f"pixel, or a float tensor with a share of each class, or [{len(images)}, boxes, {len(BOX)}] with boxes"
            )
        yield images, labels


def check_images(images: object, part: str) -> None:
    """Raises DataError unless images are a tensor that a network can read."""
    if not (isinstance(images, torch.Tensor) and images.dtype == torch.float32 and images.ndim == 4):
        raise DataError(f"images of {part} are {_in_words(images)}, expected {IMAGES}")


def _in_words(value: object) -> str:
    """What a value is, in words."""
    if not isinstance(value, torch.Tensor):
        return f"of {type(value).__name__}"
    return f"a tensor of {str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
