"""Which of many overlapping boxes remain: non-maximum suppression, class by class."""

from __future__ import annotations

import torch
from torchvision.ops import batched_nms

Found = list[dict[str, torch.Tensor]]
"""Of each image ``boxes``, ``scores`` and ``labels``."""
BEFORE = 1000
"""Boxes of an image that are compared with one another at most, those of the highest scores."""


def remaining(
    boxes: torch.Tensor, scores: torch.Tensor, least: float = 0.01, overlap: float = 0.5, most: int = 100
) -> Found:
    """The boxes of each image that no better one of the same class overlaps.

    Args:
        boxes: ``[n, places, 4]``: left, top, right, bottom.
        scores: of each class ``[n, places, classes]``.
        least: boxes of a lower score are left out.
        overlap: IoU from which on the better one of two boxes remains.
        most: boxes of an image that remain.
    """
    found = []
    for own, said in zip(boxes, scores, strict=True):
        best, which = said.flatten().topk(min(BEFORE, said.numel()))
        best, which = best[best > least], which[best > least]
        place, label = which // said.shape[1], which % said.shape[1]
        kept = batched_nms(own[place], best, label, overlap)[:most]
        found.append({"boxes": own[place[kept]], "scores": best[kept], "labels": label[kept]})
    return found


def likelihoods(values: torch.Tensor) -> torch.Tensor:
    """Numbers from 0 to 1: as they are, or what Sigmoid makes of logits."""
    return values if ((values >= 0) & (values <= 1)).all() else values.sigmoid()
