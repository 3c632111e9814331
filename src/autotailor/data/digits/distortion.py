"""The ranges of the distortion of small grey images; ``distorting.py`` applies the distortion."""

from __future__ import annotations

from typing import Annotated

from autotailor.data.errors import DataError
from autotailor.sections import Section
from autotailor.values import AboveZero, Bound, Flag, NotNegative, Positive, Told, ascends

Range = Annotated[tuple[NotNegative, NotNegative], Told("[from, to] with 0 <= from <= to", ascends)]
Size = Annotated[tuple[AboveZero, AboveZero], Told("[from, to] with 0 < from <= to", ascends)]


class Distortion(Section, of="data", error=DataError):
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

    rotation: NotNegative = 20.0
    scale: Size = (0.7, 1.0)
    aspect: Annotated[float, Bound(ge=0, lt=1)] = 0.15
    shear: NotNegative = 0.2
    shift: NotNegative = 0.1
    contrast: Range = (0.4, 0.8)
    polarity: Flag = True
    clutter: NotNegative = 0.1
    clutter_cells: Positive = 6
    noise: Range = (0.05, 0.15)
