"""Errors of the package ``finetuning``."""

from autotailor.ir.errors import AutoTailorError


class TrainingError(AutoTailorError):
    """Training cannot start as configured, or cannot go on."""
