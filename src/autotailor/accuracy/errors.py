"""Errors of the accuracy room."""

from autotailor.ir.errors import AutoTailorError


class AccuracyError(AutoTailorError):
    """Accuracies cannot be measured as configured, or not of this network."""
