"""Errors of the package ``data``."""

from autotailor.ir.errors import AutoTailorError


class DataError(AutoTailorError):
    """Data are missing, cannot be read, or differ from what their section of the configuration says."""
