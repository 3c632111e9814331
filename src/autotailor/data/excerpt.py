"""A part of an evaluation set, for evaluations that must not take long."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from autotailor.data.splits import EvaluationSet, TensorEvaluationSet

READ = 256  # images that are read at once


def spread(length: int, count: int) -> npt.NDArray[np.int64]:
    """At most ``count`` different positions, spread evenly over ``length`` of them, rising."""
    return np.unique(np.linspace(0, length - 1, count).astype(np.int64))


def excerpt(images: EvaluationSet, count: int) -> TensorEvaluationSet:
    """At most ``count`` images, spread evenly over an evaluation set and kept in memory.

    The images are spread because many sets are sorted by class. The whole set is read once.
    """
    chosen = spread(len(images), count)
    kept, first = [], 0
    for batch, _ in images.batches(READ):
        inside = chosen[(chosen >= first) & (chosen < first + len(batch))] - first
        kept.append(batch[torch.from_numpy(inside)])
        first += len(batch)
    return TensorEvaluationSet(torch.cat(kept), images.labels[chosen], images.groups[chosen])
