"""Datasets: training streams, evaluation sets, and how to get them.

The names below are imported on first use: a check or a fingerprint needs no PyTorch (``autotailor.lazy``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.data.errors import DataError
    from autotailor.data.labels import has_labels, labels_suffice
    from autotailor.data.preparation import Preparation
    from autotailor.data.registry import check, classes, fingerprint, load, meant, names, training_fingerprint, verify
    from autotailor.data.splits import DataSplits, EvaluationSet, TrainStream, resize

__getattr__ = attach(__name__)
