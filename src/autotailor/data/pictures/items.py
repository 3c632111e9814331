"""Pictures from the items of a user's dataset: PIL images, arrays and tensors become RGB pictures of 8 bits.

An array is ``[height, width]`` or ``[height, width, channels]``, a tensor ``[height, width]`` or ``[channels, height,
width]``; where only the other order gives a known number of channels, that order is taken. One channel is grey, three
are RGB, and a fourth is transparency, which is drawn over white. Whole numbers run from 0 to 255, floating-point
numbers from 0 to 1. Pixels that are already normalised are refused, because autotailor normalises them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from autotailor.data.errors import DataError
from autotailor.data.pictures.reading import PictureError, to_rgb, upright

CHANNELS = (1, 3, 4)
WHITE = 255


def to_picture(image: Any, background: str = "white") -> Image.Image:
    """The picture of an item: mode RGB, upright; transparent pixels stand over a background (``to_rgb``).

    Raises:
        DataError: the image is of no known kind, or its shape or its values are not those of a picture. The message
            does not name the item.
    """
    if isinstance(image, Image.Image):
        try:
            image.load()
            return to_rgb(upright(image), background)
        except (PictureError, OSError, SyntaxError, ValueError) as error:
            raise DataError(f"its image {error}") from error
    if hasattr(image, "detach"):
        values = image.detach().cpu()
        pixels, first = (values.float() if values.is_floating_point() else values).numpy(), True
    elif isinstance(image, np.ndarray):
        pixels, first = image, False
    else:
        raise DataError(f"its image is a {type(image).__name__}; return a PIL image, an array or a tensor")
    return to_rgb(Image.fromarray(_eight_bits(_channels_last(pixels, first))), background)


def _channels_last(pixels: npt.NDArray[Any], first: bool) -> npt.NDArray[Any]:
    """Pixels ``[height, width]`` or ``[height, width, 3 or 4]``.

    Args:
        pixels: of one image.
        first: whether the axis of the channels is expected to be the first one; otherwise it is the last one.
    """
    if not pixels.size or pixels.ndim not in (2, 3):
        raise DataError(f"its image has the shape {list(pixels.shape)}, not that of one picture; return single items")
    if pixels.ndim == 2:
        return pixels
    axes = [axis for axis in ((0, 2) if first else (2, 0)) if pixels.shape[axis] in CHANNELS]
    if not axes:
        raise DataError(
            f"its image has the shape {list(pixels.shape)}; return 1 (grey), 3 (RGB) or 4 channels (RGB, transparency)"
        )
    moved = np.moveaxis(pixels, axes[0], 2)
    return moved[:, :, 0] if moved.shape[2] == 1 else moved


def _eight_bits(pixels: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Scales pixels to 0 .. 255, and refuses those that lie outside the range of their type."""
    if pixels.dtype == np.bool_:
        return np.ascontiguousarray(pixels * np.uint8(WHITE))
    whole = np.issubdtype(pixels.dtype, np.integer)
    if not whole and not np.issubdtype(pixels.dtype, np.floating):
        raise DataError(f"its pixels are of the type {pixels.dtype}; return uint8, or floats from 0 to 1")
    low, high, most = float(pixels.min()), float(pixels.max()), WHITE if whole else 1
    if math.isnan(low):
        raise DataError("some of its pixels are no numbers (NaN); return pixels from 0 to 1, or leave the item out")
    if low < 0 or high > most:
        how = "return them without normalisation, which data.mean and data.std describe"
        if low >= 0 and high > 1:
            how = "scale them to this range, or return uint8"
        raise DataError(
            f"its pixels run from {low:g} to {high:g}, and {pixels.dtype} pixels must lie between 0 and {most}; {how}"
        )
    scaled = pixels if whole else np.rint(pixels * WHITE)
    return np.ascontiguousarray(scaled.astype(np.uint8))
