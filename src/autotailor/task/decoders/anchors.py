"""Heads of torchvision's one-stage detectors, whose boxes are told from anchors: SSDLite320 and RetinaNet.

A detector's two outputs, ``bbox_regression`` [n, anchors, 4] and ``cls_logits`` [n, anchors, classes], may come in any
order; of two with 4 channels the first is the regression. Class 0 is the background, or is not used, so that class k is
number k - 1 of the data. Heads with 91 classes are those of torchvision's weights, whose classes are the ids of COCO's
80 categories.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torchvision.models.detection.anchor_utils import AnchorGenerator, DefaultBoxGenerator
from torchvision.models.detection.image_list import ImageList

from autotailor.task.decoders.overlap import Detections, remaining

COCO = 91
UNUSED = (0, 12, 26, 29, 30, 45, 66, 68, 69, 71, 83)
"""Ids below ``COCO`` that no category has."""
LONGEST = math.log(1000 / 16)
"""Logarithm of the most times that a box is larger than its anchor, as in torchvision."""


def ssdlite320(outputs: Any, size: int) -> Detections:
    """See ``decoders``: ``torchvision.models.detection.ssdlite320_mobilenet_v3_large``, at any size."""
    regression, logits = _heads(outputs)
    anchors = DefaultBoxGenerator([[2, 3]] * 6, min_ratio=0.2, max_ratio=0.95)
    where = _anchors(anchors, size, (16, 32, 64, 128, 256, 512), regression)
    boxes = _moved(where, regression, (10.0, 10.0, 5.0, 5.0)).clamp(0, size)
    return _labelled(boxes, logits.softmax(2), least=0.001, overlap=0.55)


def retinanet(outputs: Any, size: int) -> Detections:
    """See ``decoders``: ``torchvision.models.detection.retinanet_resnet50_fpn``, and its second version."""
    regression, logits = _heads(outputs)
    sides = tuple(tuple(int(side * 2 ** (third / 3)) for third in range(3)) for side in (32, 64, 128, 256, 512))
    anchors = AnchorGenerator(sides, ((0.5, 1.0, 2.0),) * len(sides))
    where = _anchors(anchors, size, (8, 16, 32, 64, 128), regression)
    boxes = _moved(where, regression, (1.0, 1.0, 1.0, 1.0)).clamp(0, size)
    return _labelled(boxes, logits.sigmoid(), least=0.05, overlap=0.5)


def _heads(outputs: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The regression of boxes and the logits of classes."""
    heads = sorted((each.float() for each in outputs), key=lambda each: each.shape[-1] != 4)
    if len(heads) != 2 or any(each.ndim != 3 for each in heads) or heads[0].shape[2] != 4:
        shapes = ", ".join(str(list(each.shape)) for each in heads)
        raise ValueError(f"expected [n, anchors, 4] and [n, anchors, classes], not {shapes}")
    return heads[0], heads[1]


def _anchors(make: Any, size: int, strides: tuple[int, ...], like: torch.Tensor) -> torch.Tensor:
    """The anchors of an image ``[anchors, 4]``, level by level as torchvision's head lists them."""
    grids = [like.new_empty(1, 1, math.ceil(size / stride), math.ceil(size / stride)) for stride in strides]
    anchors: torch.Tensor
    (anchors,) = make(ImageList(like.new_empty(1, 3, size, size), [(size, size)]), grids)
    if len(anchors) != (count := like.shape[1]):
        raise ValueError(f"images of {size} pixels have {len(anchors)} anchors, and the outputs are for {count}")
    return anchors


def _moved(anchors: torch.Tensor, regression: torch.Tensor, weights: tuple[float, ...]) -> torch.Tensor:
    """Boxes ``[n, anchors, 4]``: moved by shares of the anchors' sides, and enlarged by exponentials."""
    sides, away = anchors[:, 2:] - anchors[:, :2], regression / regression.new_tensor(weights)
    middle = anchors[:, :2] + sides / 2 + away[..., :2] * sides
    half = sides * away[..., 2:].clamp(max=LONGEST).exp() / 2
    return torch.cat([middle - half, middle + half], 2)


def _labelled(boxes: torch.Tensor, scores: torch.Tensor, least: float, overlap: float) -> Detections:
    """The boxes that remain, with the scores of the data's classes."""
    used = [k for k in range(1, scores.shape[2]) if scores.shape[2] != COCO or k not in UNUSED]
    return remaining(boxes, scores[..., used], least, overlap)
