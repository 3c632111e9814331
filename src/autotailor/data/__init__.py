"""Datasets: training streams, evaluation sets, and how to get them."""

from autotailor.data.errors import DataError
from autotailor.data.registry import check, fingerprint, load, names
from autotailor.data.splits import DataSplits, EvaluationSet, TrainStream, resize

__all__ = ["DataError", "DataSplits", "EvaluationSet", "TrainStream", "check", "fingerprint", "load", "names", "resize"]
