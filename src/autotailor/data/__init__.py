"""Datasets: training streams, evaluation sets, and how to get them.

The names below are imported on first use: a check or a fingerprint needs no PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autotailor.data.errors import DataError
    from autotailor.data.registry import check, classes, fingerprint, load, names, verify
    from autotailor.data.splits import DataSplits, EvaluationSet, TrainStream, resize

__all__ = [
    "DataError",
    "DataSplits",
    "EvaluationSet",
    "TrainStream",
    "check",
    "classes",
    "fingerprint",
    "load",
    "names",
    "resize",
    "verify",
]

_HOMES = {
    "DataError": "errors",
    "DataSplits": "splits",
    "EvaluationSet": "splits",
    "TrainStream": "splits",
    "resize": "splits",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'autotailor.data' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"autotailor.data.{_HOMES.get(name, 'registry')}"), name)
    return value
