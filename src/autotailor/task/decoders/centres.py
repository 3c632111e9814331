"""Heat maps of the middles of objects (CenterNet; Zhou et al., 2019)."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from autotailor.task.decoders.overlap import Detections, likelihoods

MOST = 100


def centres(outputs: Any, size: int) -> Detections:
    """See ``decoders``: a heat map of each class, then widths and heights, and perhaps offsets; all of one resolution.

    The heat ``[n, classes, h, w]`` is largest in the cell of an object's middle. There ``[n, 2, h, w]`` are its width
    and height in cells, and ``[n, 2, h, w]`` how far its middle lies to the right of and below the cell's corner, in
    cells; without this output it is the middle of the cell.
    """
    heat, sides, *offsets = (each.float() for each in outputs)
    heat = likelihoods(heat)
    heat = heat * (functional.max_pool2d(heat, 3, stride=1, padding=1) == heat)
    height, width = heat.shape[2:]
    scores, which = heat.flatten(1).topk(min(MOST, heat[0].numel()))
    place = which % (height * width)

    def at(values: torch.Tensor) -> torch.Tensor:
        return values.flatten(2).transpose(1, 2).gather(1, place[..., None].expand(-1, -1, 2))

    corner = torch.stack([place % width, place // width], 2)
    middle = corner + (at(offsets[0]) if offsets else 0.5)
    cell = heat.new_tensor([size / width, size / height])
    half = at(sides).clamp(min=0) / 2
    boxes = torch.cat([(middle - half) * cell, (middle + half) * cell], 2)
    labels = which // (height * width)
    return [{"boxes": b, "scores": s, "labels": c} for b, s, c in zip(boxes, scores, labels, strict=True)]
