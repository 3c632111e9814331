"""Pictures of another size: the antialiased bilinear resize with which training data are loaded.

An output pixel is the mean of the input pixels around its centre, weighted by a triangle as wide as an output pixel
covers of the input, and at least two input pixels wide (``torch.nn.functional.interpolate(mode="bilinear",
antialias=True)``). Rows and columns are resized one after the other.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from autotailor.runtime.table import Floats
from autotailor.runtime.wire.bodies import Picture


@lru_cache(maxsize=32)
def weights(before: int, after: int) -> Floats:
    """What each input pixel adds to each output pixel along one axis, ``[after, before]``; rows have the sum 1."""
    scale = before / after
    reach = max(scale, 1.0)
    centres = scale * (np.arange(after) + 0.5)
    first = np.maximum((centres - reach + 0.5).astype(np.int64), 0)
    end = np.minimum((centres + reach + 0.5).astype(np.int64), before)
    pixels = np.arange(before)
    near = (pixels >= first[:, None]) & (pixels < end[:, None])
    triangle = np.where(near, np.maximum(0.0, 1 - np.abs(pixels + 0.5 - centres[:, None]) / reach), 0.0)
    scaled: Floats = triangle / triangle.sum(axis=1, keepdims=True)
    scaled.setflags(write=False)
    return scaled


def resized(picture: Picture, height: int, width: int) -> Picture:
    """A picture ``[C, H, W]`` as ``[C, height, width]``; the picture itself where it has this size."""
    if picture.shape[1:] == (height, width):
        return picture
    of_columns = picture.astype(np.float64) @ weights(picture.shape[2], width).T
    return np.ascontiguousarray(weights(picture.shape[1], height) @ of_columns, dtype=np.float32)
