"""Reporting: artifacts to ``report.html``, figures, and the table that a run prints at its end."""

from autotailor.reporting.contributors import contributors
from autotailor.reporting.html import FIGURES, build_report, write_figure, write_figures
from autotailor.reporting.inputs import ReportError, ReportInputs
from autotailor.reporting.terminal import print_front

__all__ = [
    "FIGURES",
    "ReportError",
    "ReportInputs",
    "build_report",
    "contributors",
    "print_front",
    "write_figure",
    "write_figures",
]
