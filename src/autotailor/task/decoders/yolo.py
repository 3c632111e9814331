"""The output of YOLO networks as their ONNX files usually have it, before non-maximum suppression."""

from __future__ import annotations

from typing import Any

from torchvision.ops import box_convert

from autotailor.task.decoders.overlap import Detections, likelihoods, remaining


def yolo(outputs: Any, size: int) -> Detections:
    """See ``decoders``: ``[n, 4 + classes, places]``, or ``[n, places, 4 + 1 + classes]``; of a tuple the first.

    The four numbers are the middle, the width and the height of a box in pixels of the image. The latter form has the
    likelihood of an object behind them, by which those of its classes are multiplied. There are more places than
    channels.
    """
    places = (outputs[0] if isinstance(outputs, tuple) else outputs).float()
    if places.ndim != 3:
        raise ValueError(f"expected [n, 4 + classes, places] or [n, places, 5 + classes], not {list(places.shape)}")
    has_objects = places.shape[1] > places.shape[2]
    places = places if has_objects else places.transpose(1, 2)
    scores = likelihoods(places[..., 4:])
    if has_objects:
        scores = scores[..., :1] * scores[..., 1:]
    return remaining(box_convert(places[..., :4], "cxcywh", "xyxy"), scores, overlap=0.6)
