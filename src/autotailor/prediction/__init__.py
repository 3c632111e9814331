"""Predicts the accuracy of all SubNets, with standard errors, from evaluations of a few (its equation: ``linear.py``).

The names below are imported on first use, see ``autotailor.lazy``.
"""

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.prediction.accuracy import Accuracy, DropError, ModelError
    from autotailor.prediction.accuracy_file import read_accuracy, write_accuracy
    from autotailor.prediction.design import d_optimal, offer
    from autotailor.prediction.evaluations.observations import Observations
    from autotailor.prediction.evaluations.outcome import Outcome, PredictionError
    from autotailor.prediction.evaluations.outcomes import Outcomes
    from autotailor.prediction.evaluations.storage import read_outcomes, write_outcomes
    from autotailor.prediction.measured import Measured
    from autotailor.prediction.model import AccuracyModel, fit, learn
    from autotailor.prediction.rounds import Rounds, evaluate_along_front

__getattr__ = attach(__name__)
