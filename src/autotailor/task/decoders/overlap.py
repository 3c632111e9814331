"""Which of many overlapping boxes remain: non-maximum suppression, class by class."""

from __future__ import annotations

import torch
from torchvision.ops import batched_nms

Detections = list[dict[str, torch.Tensor]]
"""Of each image ``boxes``, ``scores`` and ``labels``."""
BEFORE = 1000
"""Boxes of an image that are compared with one another at most, those of the highest scores."""


def remaining(
    boxes: torch.Tensor, scores: torch.Tensor, least: float = 0.01, overlap: float = 0.5, most: int = 100
) -> Detections:
    """The boxes of each image that no better one of the same class overlaps.

    Args:
        boxes: ``[n, places, 4]``: left, top, right, bottom.
        scores: of each class ``[n, places, classes]``.
        least: boxes of a lower score are left out.
        overlap: IoU from which on the better one of two boxes remains.
        most: boxes of an image that remain.
    """
    detections = []
    for own_boxes, own_scores in zip(boxes, scores, strict=True):
        best, which = own_scores.flatten().topk(min(BEFORE, own_scores.numel()))
        best, which = best[best > least], which[best > least]
        place, label = which // own_scores.shape[1], which % own_scores.shape[1]
        kept = batched_nms(own_boxes[place], best, label, overlap)[:most]
        detections.append({"boxes": own_boxes[place[kept]], "scores": best[kept], "labels": label[kept]})
    return detections


def likelihoods(values: torch.Tensor) -> torch.Tensor:
    """Numbers from 0 to 1: as they are, or what Sigmoid makes of logits."""
    return values if ((values >= 0) & (values <= 1)).all() else values.sigmoid()
