"""Parameters that all datasets of pictures share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from autotailor.data.errors import DataError
from autotailor.sections import check_integers, check_numbers, check_texts, place

INTERPOLATIONS = ("bilinear", "bicubic")
BACKGROUNDS = ("white", "black", "drop")


@dataclass(frozen=True)
class PictureConfig:
    """Parameters that all datasets of pictures share.

    Attributes:
        name: name of the data in results and messages.
        resolution: side of the images in pixels.
        labels: whether the pictures have labels. Without them the original network teaches alone, and accuracy is
            agreement with it.
        seed: of order, augmentation and the division into training, validation and test.
        mean: subtracted from pixels between 0 and 1, for each channel. It is the mean that the network was trained
            with.
        std: what remains is divided by it, for each channel.
        crop: in evaluation the shorter side is scaled to resolution / crop before the centre is cut out.
        scale: area of a training crop over that of the picture, from and to.
        flip: whether half of the training images are mirrored; false where left and right differ.
        interpolation: of every change of size, antialiased.
        background: what transparent pixels stand over; drop takes the colours stored below them, as torchvision's
            ImageFolder does.
        workers: processes or threads that open pictures; 0 leaves that to the caller.
        memory_gib: validation and test, opened and cropped (150,528 bytes for an image of 224 pixels), and training
            pictures, opened and reduced to what their crops need, are each kept in memory up to this size.
        cache: folder of the file that keeps a larger set while a rule runs; empty opens its pictures in each
            evaluation.
    """

    TEXTS: ClassVar[tuple[str, ...]] = ()
    """Parameters of a kind of dataset that are texts."""

    name: str
    resolution: int
    labels: bool = True
    seed: int = 0
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)
    crop: float = 0.875
    scale: tuple[float, float] = (0.35, 1.0)
    flip: bool = True
    interpolation: str = "bilinear"
    background: str = "white"
    workers: int = 0
    memory_gib: float = 1.0
    cache: str = ""

    def __post_init__(self) -> None:
        where = place(self)
        check_integers(self, {"resolution": 8, "seed": 0, "workers": 0}, where, DataError)
        check_numbers(self, {"memory_gib": 0.0}, where, DataError)
        check_texts(self, ("name", "cache", *self.TEXTS), where, DataError)
        if not isinstance(self.labels, bool):
            raise DataError(f"{where}.labels: expected true or false, not {self.labels!r}")
        for name in ("mean", "std"):
            if not _numbers(getattr(self, name), 3):
                raise DataError(f"{where}.{name}: expected three numbers, not {getattr(self, name)!r}")
        if min(self.std) <= 0:
            raise DataError(f"{where}.std: expected three numbers above 0, not {self.std!r}")
        if not _numbers((self.crop,), 1) or not 0 < self.crop <= 1:
            raise DataError(f"{where}.crop: expected a number above 0 and at most 1, not {self.crop!r}")
        if not _numbers(self.scale, 2) or not 0 < self.scale[0] <= self.scale[1] <= 1:
            raise DataError(f"{where}.scale: expected [from, to] with 0 < from <= to <= 1, not {self.scale!r}")
        if not isinstance(self.flip, bool):
            raise DataError(f"{where}.flip: expected true or false, not {self.flip!r}")
        if self.interpolation not in INTERPOLATIONS:
            known = ", ".join(INTERPOLATIONS)
            raise DataError(f"{where}.interpolation: expected one of {known}, not {self.interpolation!r}")
        if self.background not in BACKGROUNDS:
            known = ", ".join(BACKGROUNDS)
            raise DataError(f"{where}.background: expected one of {known}, not {self.background!r}")


def _numbers(values: object, count: int) -> bool:
    """Whether the values are a tuple of ``count`` finite numbers."""
    return (
        isinstance(values, tuple)
        and len(values) == count
        and all(isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) for v in values)
    )
