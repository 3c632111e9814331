"""Errors of the search."""

from autotailor.ir.errors import AutoTailorError


class SearchError(AutoTailorError):
    """The metrics, the space or the configuration of a search are invalid, or no SubNet meets a budget."""
