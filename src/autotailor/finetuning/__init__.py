"""Training: the original network, the SuperNet's shared weights, and scaled networks to compare with."""

from autotailor.finetuning.calibration import Calibrator, adopt_statistics, calibrate
from autotailor.finetuning.config import (
    CalibrationConfig,
    DistillationConfig,
    FinetuneConfig,
    PretrainConfig,
    ScaledConfig,
)
from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.pretraining import PretrainResult, accuracies, pretrain
from autotailor.finetuning.scaled import ScaledResult, train_scaled
from autotailor.finetuning.weight_sharing import FinetuneResult, evaluate, finetune

__all__ = [
    "CalibrationConfig",
    "Calibrator",
    "DistillationConfig",
    "FinetuneConfig",
    "FinetuneResult",
    "PretrainConfig",
    "PretrainResult",
    "ScaledConfig",
    "ScaledResult",
    "TrainingError",
    "accuracies",
    "adopt_statistics",
    "calibrate",
    "evaluate",
    "finetune",
    "pretrain",
    "train_scaled",
]
