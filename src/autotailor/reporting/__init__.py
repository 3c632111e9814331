"""Reporting: makes ``report.html``, the figures, and the table at the end of a run from the artifacts.

The names below are imported on first use, see ``autotailor.lazy``.
"""

from typing import TYPE_CHECKING

from autotailor.lazy import attach
from autotailor.reporting.contributors import contributors, stages_of

if TYPE_CHECKING:
    from autotailor.reporting.card.page import write_card
    from autotailor.reporting.html import FIGURES, build_report, write_figure
    from autotailor.reporting.inputs import ReportError, ReportInputs
    from autotailor.reporting.sentence import Answer, answer
    from autotailor.reporting.terminal import print_front

__getattr__ = attach(__name__)
