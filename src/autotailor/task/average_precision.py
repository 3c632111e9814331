"""Average precision of detections, as COCO computes it, and how much of it each picture contributes.

Of a class and an IoU threshold, detections are taken in the order of their scores; one is right where it overlaps a box
of its class that no better one has taken. With m_k = 1 where detection k is right, tp and n the numbers of right and of
all detections down to k, P the number of boxes, and e_k the largest tp/n from k on,

    AP = sum over k of m_k e_k / P.

COCO reads e at 101 recalls instead, and takes the mean over classes and ten thresholds. What does not count is neither
right nor wrong: detections on crowds. A picture i with weight w_i enters P, tp, n and the sum, so that

    dAP / dw_i = ( sum over k in i of m_k (e_k + C_k) - (m_k + f_k) E_k - AP P_i ) / P,

with f_k = 1 where k is wrong, and C and E the sums over all later maxima j of c_j and c_j e_j, c_j being the number of
right detections that read their e at j, over n_j (the infinitesimal jackknife; Efron, 1982). The scatter of these
influences is what drawing the pictures anew would give.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import torch

    from autotailor.ir.space.metric import FloatArray

THRESHOLDS = np.linspace(0.5, 0.95, 10)
"""Of the IoU from which on a detection may be right."""
RECALLS = np.linspace(0.0, 1.0, 101)
ABSENT, BOX = -2.0, -1.0
"""In the place of a score, where a row is no detection: none, or a box to be found."""
_BITS = 1 << np.arange(len(THRESHOLDS))


def matched(detections: torch.Tensor, boxes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Which detections are right, and which do not count, bool ``[n, d, thresholds]``.

    Args:
        detections: ``[n, d, 6]``: edges, score and class, the best first; the class of absent ones is -1.
        boxes: ``[n, g, 6]``: edges, class, and 1 for a crowd, of which any number may be found; see ``labels.BOX``.
    """
    import torch

    overlap, thresholds = _overlaps(detections, boxes), detections.new_tensor(THRESHOLDS)[:, None]
    crowds = boxes[:, None, :, 5] > 0
    is_free = ~crowds.expand(-1, len(THRESHOLDS), -1)
    right, ignored = [], []
    for each in overlap.unbind(1):
        near = each[:, None] >= thresholds
        best, place = each[:, None].where(near & is_free, -1.0).max(2)
        hit = best >= 0
        right.append(hit)
        ignored.append(~hit & (near & crowds).any(2))
        taken = torch.nn.functional.one_hot(place, each.shape[1]).bool() & hit[..., None]
        is_free = is_free & ~taken
    return torch.stack(right, 1), torch.stack(ignored, 1)


def _overlaps(detections: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
    """IoU of detections and boxes of one class, else -1, ``[n, d, g]``; with a crowd the share of the detection."""
    import torch

    first, second = detections[:, :, None], boxes[:, None]
    sides = (torch.minimum(first[..., 2:4], second[..., 2:4]) - torch.maximum(first[..., :2], second[..., :2])).clamp(0)
    inner, (area, other) = sides.prod(-1), ((each[..., 2:4] - each[..., :2]).prod(-1) for each in (first, second))
    whole = torch.where(second[..., 5] > 0, area, area + other - inner).clamp(min=1e-12)
    same = (first[..., 5] == second[..., 4]) & (second[..., 4] >= 0)
    return (inner / whole).where(same, -1.0)


def of_pictures(right: torch.Tensor, ignored: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
    """AP of each picture for itself, all classes in one order, as the mean over thresholds ``[n]``; 1 without boxes.

    Args:
        right: see ``matched``.
        ignored: see ``matched``; absent detections are among them.
        boxes: number of those to be found ``[n]``.
    """
    hits = right.double()
    counted = (right | ~ignored).double().cumsum(1).clamp(min=1)
    best = (hits.cumsum(1) / counted).flip(1).cummax(1).values.flip(1)
    ap = (hits * best).sum(1).mean(1) / boxes.clamp(min=1)
    return ap.where(boxes > 0, 1.0)


def rows(detections: torch.Tensor, boxes: torch.Tensor, right: torch.Tensor, ignored: torch.Tensor) -> torch.Tensor:
    """What ``of_set`` reads of pictures: float32 ``[n, d + g, 4]``, a row for each detection and each box.

    A row has the score (``ABSENT``, ``BOX``), the class, and two numbers whose bits say at which thresholds the
    detection is right and does not count.
    """
    import torch

    bits = torch.from_numpy(_BITS).to(detections)
    scores = detections[..., 4].where(detections[..., 5] >= 0, ABSENT)
    parts = [scores, detections[..., 5], (right * bits).sum(2), (ignored * bits).sum(2)]
    is_box = (boxes[..., 4] >= 0) & (boxes[..., 5] == 0)
    nothing = torch.zeros_like(boxes[..., 4])
    box_parts = [torch.where(is_box, BOX, ABSENT), boxes[..., 4], nothing, nothing]
    return torch.cat([torch.stack(parts, 2), torch.stack(box_parts, 2)], 1).float()


def of_set(kept: npt.NDArray[Any]) -> tuple[float, FloatArray]:
    """MAP of a set of pictures, 0 to 1, and the influence of each picture on it ``[n]``, from ``rows``."""
    count = len(kept)
    pictures = np.repeat(np.arange(count), kept.shape[1])
    scores, classes, *bits = kept.reshape(-1, 4).T
    right, ignored = ((each.astype(np.int64)[:, None] & _BITS) > 0 for each in bits)
    values, influences = list[float](), np.zeros(count)
    for label in np.unique(classes[scores == BOX]):
        there = (scores >= 0) & (classes == label)
        boxes = np.bincount(pictures[(scores == BOX) & (classes == label)], minlength=count)
        order = np.flatnonzero(there)[np.argsort(-scores[there], kind="stable")]
        value, moved = _of_class(right[order], ignored[order], pictures[order], boxes)
        values.append(value)
        influences += moved
    if not values:
        return 1.0, influences
    return float(np.mean(values)), influences / len(values)


def _of_class(
    right: npt.NDArray[np.bool_],
    ignored: npt.NDArray[np.bool_],
    pictures: npt.NDArray[np.int64],
    boxes: npt.NDArray[np.int64],
) -> tuple[float, FloatArray]:
    """``of_set`` of one class, from its detections in the order of their scores."""
    total, hits, counted = boxes.sum(), (right & ~ignored).astype(np.float64), (~ignored).astype(np.float64)
    if not len(hits):
        return 0.0, np.zeros(len(boxes))
    tp, n = hits.cumsum(0), np.maximum(counted.cumsum(0), 1)
    best = np.maximum.accumulate((tp / n)[::-1])[::-1]
    value = np.mean([_at_recalls(tp[:, t] / total, best[:, t]) for t in range(hits.shape[1])])
    steps = np.arange(len(hits))[:, None]
    is_peak = np.vstack([best[1:] < best[:-1], np.ones((1, hits.shape[1]), bool)])
    peak = np.minimum.accumulate(np.where(is_peak, steps, len(hits))[::-1])[::-1]
    read = np.zeros_like(hits)
    np.add.at(read, (peak, np.arange(hits.shape[1])), hits)
    read = read / n
    later, weighted = (each[::-1].cumsum(0)[::-1] for each in (read, read * best))
    own = (hits * (best + later) - counted * weighted).mean(1)
    area = (hits * best).sum(0).mean() / total
    moved = (np.bincount(pictures, own, len(boxes)) - area * boxes) / total
    return float(value), len(boxes) * moved


def _at_recalls(recall: FloatArray, best: FloatArray) -> float:
    places = np.searchsorted(recall, RECALLS, side="left")
    return float(np.where(places < len(best), best[np.minimum(places, len(best) - 1)], 0.0).mean())
