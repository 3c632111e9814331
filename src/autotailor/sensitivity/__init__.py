"""What each modification costs in accuracy, and how well the sum of costs predicts whole SubNets."""

from autotailor.finetuning import evaluate
from autotailor.sensitivity.config import SensitivityConfig
from autotailor.sensitivity.errors import SensitivityError
from autotailor.sensitivity.measurement import (
    Sensitivity,
    accuracy_metric,
    measure,
    measure_accuracies,
    validate_accuracy,
    validation_subnets,
)
from autotailor.sensitivity.statistics import accuracy, accuracy_drop, clustered_mean, kendall_tau

__all__ = [
    "Sensitivity",
    "SensitivityConfig",
    "SensitivityError",
    "accuracy",
    "accuracy_drop",
    "accuracy_metric",
    "clustered_mean",
    "evaluate",
    "kendall_tau",
    "measure",
    "measure_accuracies",
    "validate_accuracy",
    "validation_subnets",
]
