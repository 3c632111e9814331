"""What makes a network's input of a picture, and what its outputs are called: for people without autotailor."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Preparation:
    """How a picture becomes an image of validation and test.

    The shorter side is scaled to round(resolution / crop) pixels, the centre of resolution times resolution pixels is
    cut out, and each channel (red, green, blue; 0 to 1) becomes (pixel - mean) / std. A SubNet of a smaller resolution
    gets that image scaled down, antialiased bilinear.

    Attributes:
        resolution: side of the images of the data, pixels.
        mean, std: for each channel.
        crop: share of the shorter side that is kept.
        interpolation: ``bilinear`` or ``bicubic``, of the first change of size; antialiased.
        background: what transparent pixels stand over, ``white`` or ``black``; ``drop`` takes their stored colours.
        classes: names of the outputs, in their order; empty where the data have none.
    """

    resolution: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    crop: float = 1.0
    interpolation: str = "bilinear"
    classes: tuple[str, ...] = ()
    background: str = "white"
