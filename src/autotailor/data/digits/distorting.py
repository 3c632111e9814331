"""Seeded distortion of small grey images into colour images: affine map, contrast, clutter, noise.

All random numbers of a whole chunk of images come from one generator. An image therefore depends only on the seed
words and on its position in the chunk, and neither on the batch size nor on earlier calls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch.nn import functional

from autotailor.data.digits.distortion import Distortion


def distort(images: torch.Tensor, resolution: int, distortion: Distortion, random: torch.Generator) -> torch.Tensor:
    """Distorts grey images ``[n, 1, h, w]`` (ink 0 to 1) into images ``[n, 3, resolution, resolution]`` (0 to 1)."""
    n = len(images)
    ink = _warp(images, resolution, _affine(n, distortion, random))
    contrast = _uniform(random, distortion.contrast, n, 3, 1, 1)
    if distortion.polarity:
        contrast = contrast * (torch.randint(0, 2, (n, 1, 1, 1), generator=random) * 2 - 1)
    middle = _uniform(random, (0.4, 0.6), n, 3, 1, 1)
    picture = middle + contrast * (ink - 0.5)
    cells = distortion.clutter_cells
    coarse = torch.randn(n, 3, cells, cells, generator=random) * distortion.clutter
    picture += functional.interpolate(coarse, [resolution, resolution], mode="bilinear", align_corners=False)
    level = _uniform(random, distortion.noise, n, 1, 1, 1)
    picture += torch.randn(n, 3, resolution, resolution, generator=random) * level
    return picture.clamp_(0.0, 1.0)


def _uniform(random: torch.Generator, bounds: Sequence[float], *shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=random) * (bounds[1] - bounds[0]) + bounds[0]


def _affine(n: int, distortion: Distortion, random: torch.Generator) -> torch.Tensor:
    """Affine maps ``[n, 2, 3]`` from coordinates in the output to coordinates in the input, both in -1 .. 1."""

    def either(limit: float) -> torch.Tensor:
        return _uniform(random, (-limit, limit), n)

    angle = either(math.radians(distortion.rotation))
    scale = _uniform(random, distortion.scale, n)
    aspect, shear = either(distortion.aspect), either(distortion.shear)
    shift = torch.stack([either(2 * distortion.shift), either(2 * distortion.shift)], dim=1)
    cos, sin = torch.cos(angle), torch.sin(angle)
    turn = torch.stack([torch.stack([cos, -sin], 1), torch.stack([sin, cos], 1)], 1)
    zero = torch.zeros(n)
    form = torch.stack([torch.stack([1 + aspect, shear], 1), torch.stack([zero, 1 / (1 + aspect)], 1)], 1) / scale.view(
        n, 1, 1
    )
    matrix = form @ turn
    return torch.cat([matrix, -(matrix @ shift.unsqueeze(2))], dim=2)


def _warp(images: torch.Tensor, resolution: int, maps: torch.Tensor) -> torch.Tensor:
    grid = functional.affine_grid(maps, [len(images), 1, resolution, resolution], align_corners=False)
    return functional.grid_sample(images, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
