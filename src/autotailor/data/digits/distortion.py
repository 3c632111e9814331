"""The ranges of the distortion of small grey images; ``distorting.py`` applies the distortion."""

from __future__ import annotations

from dataclasses import dataclass

from autotailor.data.errors import DataError

Range = tuple[float, float]


@dataclass(frozen=True)
class Distortion:
    """Ranges from which each image's distortion is drawn uniformly.

    Attributes:
        rotation: largest angle to either side, degrees.
        scale: side of the digit's frame over the side of the image, from and to.
        aspect: largest relative stretch of width against height, to either side.
        shear: largest shear to either side, tangent of the angle.
        shift: largest shift to either side, over the side of the image.
        contrast: ink minus paper for each channel, from and to (pixels are between 0 and 1).
        polarity: whether half of the images are drawn light on dark and half dark on light.
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
        for name in ("scale", "contrast", "noise"):
            bounds = getattr(self, name)
            if not (isinstance(bounds, tuple) and len(bounds) == 2 and 0 <= bounds[0] <= bounds[1]):
                raise DataError(f"distortion {name}: expected [from, to] with 0 <= from <= to, not {bounds!r}")
        for name in ("rotation", "aspect", "shear", "shift", "clutter"):
            if not isinstance(getattr(self, name), int | float) or getattr(self, name) < 0:
                raise DataError(f"distortion {name}: expected a number >= 0, not {getattr(self, name)!r}")
        if self.scale[0] <= 0 or self.aspect >= 1 or self.clutter_cells < 1:
            raise DataError("distortion: scale must be > 0, aspect < 1, clutter_cells >= 1")
