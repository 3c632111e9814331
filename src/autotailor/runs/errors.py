"""Errors of questions to finished runs."""

from autotailor.ir.errors import AutoTailorError


class RunError(AutoTailorError):
    """A run is not finished or not of one piece, or a question does not fit the run."""
