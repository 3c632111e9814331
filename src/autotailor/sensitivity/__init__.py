"""The accuracy drop of each modification, and how well the sum of drops predicts the accuracy of whole SubNets.

The names below are imported on first use, see ``autotailor.lazy``.
"""

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.sensitivity.config import SensitivityConfig, SensitivityError
    from autotailor.sensitivity.evaluations import evaluate_designed
    from autotailor.sensitivity.measurement import (
        Sensitivity,
        accuracy_metric,
        evaluate,
        learnt_from,
        measure,
        measure_accuracies,
        predicted_accuracy,
    )
    from autotailor.sensitivity.validation import validate_accuracy, validation_subnets

__getattr__ = attach(__name__)
