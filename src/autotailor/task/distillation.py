"""Losses of training with labels and with a teacher."""

from __future__ import annotations

import torch
from torch.nn import functional

from autotailor.task.interface import Lesson


def label_loss(logits: torch.Tensor, labels: torch.Tensor, smoothing: float, independent: bool = False) -> torch.Tensor:
    """Cross entropy of logits ``[b, classes]`` and labels.

    Args:
        logits: of one Softmax, or of one Sigmoid for each class.
        labels: the class of each image, ``[b]``; of mixed images the share of each class, ``[b, classes]``.
        smoothing: of the labels.
        independent: whether each class has its own Sigmoid; the loss is then the sum of binary cross entropies.
    """
    if independent:
        classes = logits.shape[1]
        shares = labels if labels.is_floating_point() else functional.one_hot(labels, classes)
        return _binary(logits, shares.to(logits.dtype) * (1 - smoothing) + smoothing / classes)
    return functional.cross_entropy(logits, labels, label_smoothing=smoothing)


def distillation_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    teacher: torch.Tensor,
    lesson: Lesson,
) -> torch.Tensor:
    """(1 - w) cross entropy + w T^2 KL(teacher / T || logits / T) (Hinton et al., 2015).

    Args:
        logits: ``[b, classes]``, with gradient.
        labels: as in ``label_loss``; they are not looked at where the teacher has all the weight (w = 1).
        teacher: logits ``[b, classes]``, without gradient.
        lesson: with the weight w and the temperature T. Where each class has its own Sigmoid, both parts of the loss
            are sums over the classes, and KL compares the probabilities of yes and no. A common shift of all logits
            changes this loss, so that a threshold on a probability keeps its meaning.
    """
    t = lesson.temperature
    if lesson.independent:
        probabilities = torch.sigmoid(teacher / t)
        soft = _binary(logits / t, probabilities) - _binary(teacher / t, probabilities)
    else:
        soft = functional.kl_div(
            functional.log_softmax(logits / t, dim=1),
            functional.log_softmax(teacher / t, dim=1),
            reduction="batchmean",
            log_target=True,
        )
    if lesson.weight == 1:
        return t * t * soft
    hard = label_loss(logits, labels, lesson.smoothing, lesson.independent)
    return (1 - lesson.weight) * hard + lesson.weight * t * t * soft


def pixels(maps: torch.Tensor) -> torch.Tensor:
    """Maps ``[b, classes, h, w]`` as one row of logits for each pixel, ``[b * h * w, classes]``."""
    return maps.movedim(1, -1).flatten(0, -2)


def _binary(logits: torch.Tensor, probabilities: torch.Tensor) -> torch.Tensor:
    """Binary cross entropies, summed over the classes and averaged over the batch."""
    return functional.binary_cross_entropy_with_logits(logits, probabilities, reduction="none").sum(1).mean()
