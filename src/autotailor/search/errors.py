"""Errors of the search."""

from __future__ import annotations

from autotailor.ir.errors import AutoTailorError


class SearchError(AutoTailorError):
    """A search is asked for something that its metrics, its space or its configuration cannot give."""
