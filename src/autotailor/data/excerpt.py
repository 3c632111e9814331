"""A part of an evaluation set, for evaluations that must not take long."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from autotailor.data.splits import EvaluationSet, TensorEvaluationSet, kept


def spread(length: int, count: int) -> npt.NDArray[np.int64]:
    """At most ``count`` different positions, spread evenly over ``length`` of them, rising."""
    return np.unique(np.linspace(0, length - 1, count).astype(np.int64))


def share_of(images: EvaluationSet, count: int) -> EvaluationSet:
    """At most ``count`` images, spread evenly over an evaluation set; the set itself where ``count`` is 0.

    In contrast to ``excerpt`` nothing is read yet.
    """
    return images.part(spread(len(images), count)) if 0 < count < len(images) else images


def excerpt(images: EvaluationSet, count: int) -> TensorEvaluationSet:
    """At most ``count`` images, spread evenly over an evaluation set and kept in memory.

    The images are spread because many sets are sorted by class. The whole set is read once.
    """
    return kept(images, spread(len(images), count))
