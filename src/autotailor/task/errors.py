"""Errors of tasks."""

from autotailor.ir.errors import AutoTailorError


class TaskError(AutoTailorError):
    """A task is unknown, or its data have another form than it expects."""
