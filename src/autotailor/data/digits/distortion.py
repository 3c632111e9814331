"""The ranges of the distortion of small grey images; ``distorting.py`` applies the distortion."""

from __future__ import annotations

import math
from dataclasses import dataclass

from autotailor.data.errors import DataError
from autotailor.sections import check_integers, check_numbers, place

Range = tuple[float, float]


@dataclass(frozen=True)
class Distortion:
    """Ranges from which each image's distortion is drawn uniformly.

    Attributes:
        rotation: largest angle to either side, in degrees.
        scale: side of the digit's frame over the side of the image, from and to.
        aspect: largest relative stretch of width against height, to either side.
        shear: largest shear to either side, as the tangent of the angle.
        shift: largest shift to either side, over the side of the image.
        contrast: ink minus paper for each channel, from and to; pixels run from 0 to 1.
        polarity: whether half of the images are light on dark and half dark on light.
        clutter: standard deviation of the smooth random background.
        clutter_cells: cells of the background's coarse grid along each side.
        noise: standard deviation of the pixel noise, from and to.
    """

    rotation: float = 20.0
    scale: Range = (0.7, 1.0)
    aspect: float = 0.15
    shear: float = 0.2
    shift: float = 0.1
    contrast: Range = (0.4, 0.8)
    polarity: bool = True
    clutter: float = 0.1
    clutter_cells: int = 6
    noise: Range = (0.05, 0.15)

    def __post_init__(self) -> None:
        where = place(self)
        for name in ("scale", "contrast", "noise"):
            bounds = getattr(self, name)
            if not (isinstance(bounds, tuple) and len(bounds) == 2 and _ascend(*bounds)):
                raise DataError(f"{where}.{name}: expected [from, to] with 0 <= from <= to, not {bounds!r}")
        check_numbers(self, dict.fromkeys(("rotation", "aspect", "shear", "shift", "clutter"), 0.0), where, DataError)
        check_integers(self, {"clutter_cells": 1}, where, DataError)
        if not isinstance(self.polarity, bool):
            raise DataError(f"{where}.polarity: expected true or false, not {self.polarity!r}")
        if self.scale[0] <= 0:
            raise DataError(f"{where}.scale: expected [from, to] above 0, not {self.scale!r}")
        if self.aspect >= 1:
            raise DataError(f"{where}.aspect: expected a number below 1, not {self.aspect!r}")


def _ascend(low: object, high: object) -> bool:
    """Whether 0 <= low <= high for two finite numbers."""
    return isinstance(low, int | float) and isinstance(high, int | float) and 0 <= low <= high < math.inf
