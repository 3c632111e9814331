"""Errors of the sensitivity room."""

from autotailor.ir.errors import AutoTailorError


class SensitivityError(AutoTailorError):
    """Sensitivities cannot be measured, or do not fit the space."""
