"""Errors of the package ``prediction``."""

from autotailor.ir.errors import AutoTailorError


class PredictionError(AutoTailorError):
    """Accuracies cannot be predicted from these evaluations."""
