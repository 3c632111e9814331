"""Errors of the finetuning room."""

from autotailor.ir.errors import AutoTailorError


class TrainingError(AutoTailorError):
    """Training cannot start as configured, or cannot go on."""
