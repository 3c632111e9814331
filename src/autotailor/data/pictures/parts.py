"""Which pictures are for training, validation and test: the parts that the user made, and those that are drawn here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from autotailor.data.fractions import Fractions
from autotailor.data.pictures.config import PictureConfig
from autotailor.data.pictures.division import divide

NAMES = {"train": ("train",), "val": ("val", "valid", "validation"), "test": ("test",)}
"""Maps each part to the names that users give it, in small letters."""
IntArray = npt.NDArray[np.int64]


class DividedConfig(PictureConfig):
    """Parameters of pictures of which some parts may be missing.

    Attributes:
        fractions: shares of training, validation and test where the pictures are divided here: of each class the same
            shares, copies of a picture in one part.
    """

    fractions: Fractions = (0.8, 0.1, 0.1)


@dataclass(frozen=True)
class Part:
    """What the division needs to know of one part.

    Attributes:
        labels: of the pictures.
        contents: a text for each picture; pictures with equal texts are the same picture.
    """

    labels: Sequence[int]
    contents: Sequence[str]


class Divided(Protocol):
    """What a configuration says of a division."""

    @property
    def name(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def fractions(self) -> tuple[float, float, float]: ...


def assign(
    config: Divided, classes: Sequence[str], parts: Mapping[str, Part]
) -> tuple[tuple[str, IntArray], tuple[str, IntArray], tuple[str, IntArray]]:
    """The pictures of training, validation and test: for each the part that they are in, and their positions in it.

    A missing ``test`` is half of ``val``. A missing ``val`` is taken from ``train``, and so is ``test`` where both are
    missing. The seed draws such parts, every class in proportion, equal pictures in one part.

    Args:
        config: with the seed and the shares.
        classes: names in the order of the labels; empty where pictures have no labels.
        parts: ``train``, and ``val`` and ``test`` where the user made them.

    Raises:
        DataError: a class has too few different pictures to be divided.
    """

    def drawn(part: str, shares: Sequence[float]) -> list[tuple[str, IntArray]]:
        pictures = parts[part]
        divided = divide(config.name, classes, pictures.labels, pictures.contents, shares, config.seed)
        return [(part, positions) for positions in divided]

    def whole(part: str) -> tuple[str, IntArray]:
        return part, np.arange(len(parts[part].labels), dtype=np.int64)

    train, val, test = config.fractions
    if "val" in parts:
        held = [whole("val"), whole("test")] if "test" in parts else drawn("val", (1, 1))
        return whole("train"), held[0], held[1]
    if "test" in parts:
        first, second = drawn("train", (train + test, val))
        return first, second, whole("test")
    first, second, third = drawn("train", (train, val, test))
    return first, second, third
