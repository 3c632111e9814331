"""Predicts the accuracy of all SubNets, with standard errors, from evaluations of a few.

The names below are imported on first use, see ``autotailor.lazy``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.prediction.accuracy import Accuracy, DropError, ModelError
    from autotailor.prediction.accuracy_file import read_accuracy, write_accuracy
    from autotailor.prediction.design import d_optimal, offer
    from autotailor.prediction.errors import PredictionError
    from autotailor.prediction.evaluations.noise import guessed
    from autotailor.prediction.evaluations.observations import Observations
    from autotailor.prediction.evaluations.outcome import Outcome
    from autotailor.prediction.evaluations.outcomes import Outcomes
    from autotailor.prediction.evaluations.storage import read_outcomes, write_outcomes
    from autotailor.prediction.measured import Measured
    from autotailor.prediction.model import AccuracyModel, fit, learn
    from autotailor.prediction.rounds import Rounds, evaluate_along_front

__all__ = [
    "Accuracy",
    "AccuracyModel",
    "DropError",
    "Measured",
    "ModelError",
    "Observations",
    "Outcome",
    "Outcomes",
    "PredictionError",
    "Rounds",
    "d_optimal",
    "evaluate_along_front",
    "fit",
    "guessed",
    "learn",
    "offer",
    "read_accuracy",
    "read_outcomes",
    "write_accuracy",
    "write_outcomes",
]

_HOMES = {
    "Accuracy": "autotailor.prediction.accuracy",
    "AccuracyModel": "autotailor.prediction.model",
    "DropError": "autotailor.prediction.accuracy",
    "Measured": "autotailor.prediction.measured",
    "ModelError": "autotailor.prediction.accuracy",
    "Observations": "autotailor.prediction.evaluations.observations",
    "Outcome": "autotailor.prediction.evaluations.outcome",
    "Outcomes": "autotailor.prediction.evaluations.outcomes",
    "PredictionError": "autotailor.prediction.errors",
    "Rounds": "autotailor.prediction.rounds",
    "d_optimal": "autotailor.prediction.design",
    "offer": "autotailor.prediction.design",
    "evaluate_along_front": "autotailor.prediction.rounds",
    "fit": "autotailor.prediction.model",
    "guessed": "autotailor.prediction.evaluations.noise",
    "learn": "autotailor.prediction.model",
    "read_accuracy": "autotailor.prediction.accuracy_file",
    "read_outcomes": "autotailor.prediction.evaluations.storage",
    "write_accuracy": "autotailor.prediction.accuracy_file",
    "write_outcomes": "autotailor.prediction.evaluations.storage",
}
__getattr__ = attach(__name__, _HOMES)
