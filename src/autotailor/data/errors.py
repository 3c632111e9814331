"""Errors of the data room."""

from autotailor.ir.errors import AutoTailorError


class DataError(AutoTailorError):
    """Data cannot be had, or are not what their section of the configuration says."""
