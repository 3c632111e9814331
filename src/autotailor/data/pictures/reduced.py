"""Opened training pictures, reduced to what their crops need and kept for the next epochs and rules.

To decode a large picture takes longer than a step of training on it. A picture is reduced by a whole factor (to means
over squares) where the smallest crop still has ``FINER`` times the pixels of an image on a side, whether the picture is
kept or not, so that results do not depend on the memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

from autotailor.data.pictures.cache import GIB, identity, remembered
from autotailor.data.pictures.config import PictureConfig

FINER = 2.0
"""Pixels of a crop for each pixel of the image that is made of it, on a side, at least."""


class Reduced:
    """Opens pictures by number; each process that opens pictures keeps its part of ``config.memory_gib``.

    Args:
        config: of the pictures.
        open: from a number to an RGB PIL image, or to a mask (``Pictures.masks``).
    """

    def __init__(self, config: PictureConfig, open: Callable[[int], Any]) -> None:  # noqa: A002  # as of Pictures
        self._config, self._open = config, open
        self._kept: dict[int, Any] = {}
        self._left = config.memory_gib * GIB / max(1, config.workers)

    def __call__(self, number: int) -> Any:
        """The picture, reduced."""
        if number in self._kept:
            return self._kept[number]
        picture = self._opened(number) if self._left > 0 else reduced(self._open(number), self._config)
        size = len(picture.getbands()) * picture.width * picture.height
        if size <= self._left:
            self._left -= size
            self._kept[number] = picture
        return picture

    def _opened(self, number: int) -> Any:
        config = self._config
        how = f"reduced for crops of {config.scale[0]} at {config.resolution} pixels times {FINER}"
        name = identity(self._open, number)
        return Image.fromarray(remembered(config, name, how, lambda: np.asarray(reduced(self._open(number), config))))


def reduced(picture: Any, config: PictureConfig) -> Any:
    """A PIL image reduced by the largest whole factor that leaves the smallest crop fine enough.

    Of each square of a mask (mode L) the pixel in the middle stays, because there is no mean of classes.
    """
    smallest = math.sqrt(config.scale[0] * picture.width * picture.height)
    factor = int(min(smallest, picture.width, picture.height) / (FINER * config.resolution))
    if factor > 1 and picture.mode == "L":
        rows, columns = (
            np.minimum(np.arange(0, side, factor) + factor // 2, side - 1) for side in (picture.height, picture.width)
        )
        return Image.fromarray(np.asarray(picture)[rows][:, columns])
    return picture.reduce(factor) if factor > 1 else picture
