"""The loss of learning from labels and from a teacher."""

from __future__ import annotations

import torch
from torch.nn import functional

from autotailor.finetuning.config import DistillationConfig


def label_loss(logits: torch.Tensor, labels: torch.Tensor, smoothing: float) -> torch.Tensor:
    """Cross entropy of logits ``[b, classes]`` and labels ``[b]``."""
    return functional.cross_entropy(logits, labels, label_smoothing=smoothing)


def distillation_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    teacher: torch.Tensor,
    config: DistillationConfig,
    smoothing: float,
) -> torch.Tensor:
    """(1 - w) cross entropy + w T^2 KL(teacher / T || logits / T) (Hinton et al., 2015).

    Args:
        logits: ``[b, classes]``, with gradient.
        labels: ``[b]``.
        teacher: logits ``[b, classes]``, without gradient.
        config: weight w and temperature T.
        smoothing: of the labels.
    """
    t = config.temperature
    soft = functional.kl_div(
        functional.log_softmax(logits / t, dim=1),
        functional.log_softmax(teacher / t, dim=1),
        reduction="batchmean",
        log_target=True,
    )
    return (1 - config.weight) * label_loss(logits, labels, smoothing) + config.weight * t * t * soft
