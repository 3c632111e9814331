"""Datasets: training streams, evaluation sets, and how to get them.

The names below are imported on first use: a check or a fingerprint needs no PyTorch (``autotailor.lazy``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.data.errors import DataError
    from autotailor.data.labels import Score, has_labels, score
    from autotailor.data.preparation import Preparation
    from autotailor.data.registry import check, classes, fingerprint, load, meant, names, training_fingerprint, verify
    from autotailor.data.splits import DataSplits, EvaluationSet, TrainStream, resize

__all__ = [
    "DataError",
    "DataSplits",
    "EvaluationSet",
    "Preparation",
    "Score",
    "TrainStream",
    "check",
    "classes",
    "fingerprint",
    "has_labels",
    "load",
    "meant",
    "names",
    "resize",
    "score",
    "training_fingerprint",
    "verify",
]

_HOMES = {
    "DataError": "autotailor.data.errors",
    "DataSplits": "autotailor.data.splits",
    "EvaluationSet": "autotailor.data.splits",
    "Preparation": "autotailor.data.preparation",
    "Score": "autotailor.data.labels",
    "TrainStream": "autotailor.data.splits",
    "check": "autotailor.data.registry",
    "classes": "autotailor.data.registry",
    "fingerprint": "autotailor.data.registry",
    "has_labels": "autotailor.data.labels",
    "load": "autotailor.data.registry",
    "meant": "autotailor.data.registry",
    "names": "autotailor.data.registry",
    "resize": "autotailor.data.splits",
    "score": "autotailor.data.labels",
    "training_fingerprint": "autotailor.data.registry",
    "verify": "autotailor.data.registry",
}
__getattr__ = attach(__name__, _HOMES)
