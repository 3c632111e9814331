"""Predicts the accuracy of all SubNets, with standard errors, from evaluations of a few.

The names below are imported on first use, see ``autotailor.lazy``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.prediction.design import d_optimal, ends
    from autotailor.prediction.errors import PredictionError
    from autotailor.prediction.model import AccuracyModel, fit
    from autotailor.prediction.outcomes import Outcomes
    from autotailor.prediction.rounds import Rounds, evaluate_along_front
    from autotailor.prediction.storage import read_metric, read_outcomes, write_metric, write_outcomes

__all__ = [
    "AccuracyModel",
    "Outcomes",
    "PredictionError",
    "Rounds",
    "d_optimal",
    "ends",
    "evaluate_along_front",
    "fit",
    "read_metric",
    "read_outcomes",
    "write_metric",
    "write_outcomes",
]

_HOMES = {
    "AccuracyModel": "autotailor.prediction.model",
    "Outcomes": "autotailor.prediction.outcomes",
    "PredictionError": "autotailor.prediction.errors",
    "Rounds": "autotailor.prediction.rounds",
    "d_optimal": "autotailor.prediction.design",
    "ends": "autotailor.prediction.design",
    "evaluate_along_front": "autotailor.prediction.rounds",
    "fit": "autotailor.prediction.model",
    "read_metric": "autotailor.prediction.storage",
    "read_outcomes": "autotailor.prediction.storage",
    "write_metric": "autotailor.prediction.storage",
    "write_outcomes": "autotailor.prediction.storage",
}
__getattr__ = attach(__name__, _HOMES)
