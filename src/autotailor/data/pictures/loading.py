"""The three splits from pictures that are opened by their number within the parts that the user made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.data.errors import DataError
from autotailor.data.labels import UNKNOWN
from autotailor.data.pictures.parts import DividedConfig, Part, assign
from autotailor.data.pictures.stream import Pictures, splits
from autotailor.data.splits import DataSplits


@dataclass(frozen=True)
class Opened:
    """The pictures of one part.

    Attributes:
        open: from a number to an RGB PIL image; several processes or threads call it at once.
        labels: as of ``Pictures``.
        contents: a text for each picture; pictures with equal texts are the same picture.
        masks: as of ``Pictures``; labels are then ``UNKNOWN``.
    """

    open: Callable[[int], Any]
    labels: npt.NDArray[Any]
    contents: Sequence[str]
    masks: Callable[[int], Any] | None = None


def divided(config: DividedConfig, classes: Sequence[str], parts: Mapping[str, Opened]) -> DataSplits:
    """The three splits of pictures, of which some parts may be missing (``pictures.parts.assign``).

    Args:
        config: of the dataset.
        classes: names in the order of the labels; without labels they are not looked at.
        parts: ``train``, and ``val`` and ``test`` where the user made them.

    Raises:
        DataError: a label lies outside the classes, or a class has too few different pictures to be divided.
    """
    by_class = config.labels and parts["train"].labels.ndim == 1 and parts["train"].masks is None
    if by_class:
        _check_labels(config.name, classes, parts)
    to_divide = {name: Part(_home(part.labels), part.contents) for name, part in parts.items()}
    numbers = np.unique([text for part in parts.values() for text in part.contents], return_inverse=True)[1]
    ends = np.cumsum([len(part.labels) for part in parts.values()])
    groups = dict(zip(parts, np.split(numbers.astype(np.int64), ends[:-1]), strict=True))
    train, validation, test = (
        Pictures(parts[name].open, parts[name].labels, groups[name], parts[name].masks).part(ids)
        for name, ids in assign(config, classes if by_class else (), to_divide)
    )
    return splits(config, len(classes), train, validation, test)


def _home(labels: npt.NDArray[Any]) -> list[int]:
    """The class of each picture by which pictures are divided; ``UNKNOWN`` where pictures may have several."""
    return labels.tolist() if labels.ndim == 1 else [UNKNOWN] * len(labels)


def _check_labels(name: str, classes: Sequence[str], parts: Mapping[str, Opened]) -> None:
    """Raises DataError naming the first picture whose label is not the number of a class."""
    for part, opened in parts.items():
        outside = np.flatnonzero((opened.labels < 0) | (opened.labels >= len(classes)))
        if len(outside):
            raise DataError(
                f"data {name}: item {outside[0]} of {part} has the label {opened.labels[outside[0]]}, and labels must "
                f"lie between 0 and {len(classes) - 1}; correct it, or set data.labels to false"
            )
    missing = sorted(set(range(len(classes))) - set(parts["train"].labels.tolist()))
    if missing:
        last = max(parts, key=lambda part: int(parts[part].labels.max()))
        labels = parts[last].labels
        raise DataError(
            f"data {name}: no item of train has the label {missing[0]} ({classes[missing[0]]}), and item "
            f"{labels.argmax()} of {last} has the largest label, {labels.max()}; give each class pictures, or number "
            f"the classes from 0 on without gaps"
        )
