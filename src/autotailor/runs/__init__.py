"""Questions to a finished run: what a SubNet costs, any two metrics' front, and one more budget, without a rule.

``open_run`` is ``autotailor.open_run``. The names below are imported on first use, see ``autotailor.lazy``.
"""

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.runs.export import ExportAnswer
    from autotailor.runs.folder import RunError
    from autotailor.runs.fronts.answer import FrontAnswer, Limit
    from autotailor.runs.known_metric import Estimate, KnownMetric
    from autotailor.runs.prediction import Prediction
    from autotailor.runs.run import Run, open_run

__getattr__ = attach(__name__)
