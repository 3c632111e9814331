"""Parameters that all datasets of pictures share."""

from __future__ import annotations

import math
from dataclasses import dataclass

from autotailor.data.errors import DataError
from autotailor.sections import check_integers, check_numbers

INTERPOLATIONS = ("bilinear", "bicubic")


@dataclass(frozen=True)
class PictureConfig:
    """Parameters that all datasets of pictures share.

    Attributes:
        name: of the dataset, for messages and reports.
        labels: whether the pictures have labels. With False, labels are not read; the original network teaches alone,
            and its answers stand for the labels.
        resolution: side of the images, pixels.
        seed: of order, augmentation and the division into parts.
        mean, std: for each channel; pixels between 0 and 1 become (pixel - mean) / std.
        crop: in evaluation the shorter side is scaled to resolution / crop before the centre is cut out.
        scale: smallest and largest area of the training crop, as a share of the picture's area.
        flip: whether half of the training images are mirrored.
        interpolation: ``bilinear`` or ``bicubic``, of every change of size; always antialiased.
        workers: threads that open pictures, or processes for training where processes are forked; with 0, the calling
            thread opens the pictures.
        memory_gib: validation and test are each kept in memory, opened and cropped, up to this size, GiB.
        cache: folder of the file that keeps a larger set; "" opens its pictures in each evaluation.
    """

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
    workers: int = 0
    memory_gib: float = 1.0
    cache: str = ""

    def __post_init__(self) -> None:
        where = f"data {self.name}"
        check_integers(self, {"resolution": 8, "seed": 0, "workers": 0}, where, DataError)
        check_numbers(self, {"memory_gib": 0.0}, where, DataError)
        if not isinstance(self.labels, bool):
            raise DataError(f"{where}: labels must be true or false, not {self.labels!r}")
        if not (_numbers(self.mean, 3) and _numbers(self.std, 3) and min(self.std) > 0):
            raise DataError(f"{where}: mean and std need three numbers each, std above 0, not {self.mean}, {self.std}")
        if not _numbers((self.crop,), 1) or not _numbers(self.scale, 2):
            raise DataError(
                f"{where}: crop must be a number and scale two numbers, not {self.crop!r} and {self.scale!r}"
            )
        if not 0 < self.crop <= 1 or not 0 < self.scale[0] <= self.scale[1] <= 1:
            raise DataError(
                f"{where}: crop must be above 0 and at most 1, and scale must be [from, to] with "
                f"0 < from <= to <= 1, not {self.crop} and {list(self.scale)}"
            )
        if self.interpolation not in INTERPOLATIONS:
            raise DataError(f"{where}: interpolation is one of {', '.join(INTERPOLATIONS)}, not {self.interpolation!r}")


def _numbers(values: object, count: int) -> bool:
    """Whether the values are a tuple of ``count`` finite numbers."""
    return (
        isinstance(values, tuple)
        and len(values) == count
        and all(isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) for v in values)
    )
