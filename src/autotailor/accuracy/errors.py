"""Errors of the package ``accuracy``."""

from autotailor.ir.errors import AutoTailorError


class AccuracyError(AutoTailorError):
    """Accuracies cannot be measured with this configuration, or of this network."""
