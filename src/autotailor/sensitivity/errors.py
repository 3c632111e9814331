"""Errors of the package ``sensitivity``."""

from autotailor.ir.errors import AutoTailorError


class SensitivityError(AutoTailorError):
    """Sensitivities cannot be measured, or do not fit the space."""
