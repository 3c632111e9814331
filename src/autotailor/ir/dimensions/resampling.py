"""Weights that are indexed by the image: position embeddings and attention biases, resized with the resolution.

A weight's axis may be a spatial expression, for instance ``Sum((Constant(1), Product((h, w))))`` for a class token and
the patches. Each spatial factor is interpolated by itself (bicubic and antialiased, as timm resizes position
embeddings). A grid is therefore resized separably, and a bias between two grids along all four axes of the grids.
"""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from autotailor.ir.dimensions.dimension import Dimension, Product, Sizes, Sum

Matrix = npt.NDArray[Any]


def is_resampled(dimension: Dimension, sizes: Sizes) -> bool:
    """Whether a spatial part of an axis changes its size."""
    if not dimension.is_spatial:
        return False
    children = dimension.children() if isinstance(dimension, (Sum, Product)) else ()
    if not children:
        return dimension.size(sizes) != dimension.meta
    return any(is_resampled(child, sizes) for child in children)


def resampling_matrix(dimension: Dimension, sizes: Sizes) -> Matrix:
    """Matrix ``[active, meta]`` that turns an axis of the unmodified weight into the axis of a SubNet's weight."""
    if isinstance(dimension, Sum):
        from scipy.linalg import block_diag

        blocks: Matrix = block_diag(*(resampling_matrix(part, sizes) for part in dimension.parts))
        return blocks
    if isinstance(dimension, Product):
        result: Matrix = np.ones((1, 1))
        for factor in dimension.factors:
            result = np.asarray(np.kron(result, resampling_matrix(factor, sizes)))
        return result
    if is_resampled(dimension, sizes):
        return _interpolation(dimension.meta, dimension.size(sizes))
    return np.eye(dimension.meta)[dimension.indices(sizes, {})]


@cache
def _interpolation(meta: int, active: int) -> Matrix:
    """One-dimensional bicubic interpolation from ``meta`` to ``active`` samples."""
    identity = torch.eye(meta, dtype=torch.float64)[None, None]
    resized = F.interpolate(identity, size=(active, meta), mode="bicubic", antialias=True, align_corners=False)
    matrix: Matrix = resized[0, 0].numpy()
    return matrix
