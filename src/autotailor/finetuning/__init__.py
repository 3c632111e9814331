"""Training: the original network, the SuperNet's shared weights, and scaled networks to compare with.

The names below are imported on first use, see ``autotailor.lazy``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.accuracy.calibration import Calibrator, adopt_statistics, calibrate
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

_HOMES = {
    "CalibrationConfig": "autotailor.finetuning.config",
    "Calibrator": "autotailor.accuracy.calibration",
    "DistillationConfig": "autotailor.finetuning.config",
    "FinetuneConfig": "autotailor.finetuning.config",
    "FinetuneResult": "autotailor.finetuning.weight_sharing",
    "PretrainConfig": "autotailor.finetuning.config",
    "PretrainResult": "autotailor.finetuning.pretraining",
    "ScaledConfig": "autotailor.finetuning.config",
    "ScaledResult": "autotailor.finetuning.scaled",
    "TrainingError": "autotailor.finetuning.errors",
    "accuracies": "autotailor.finetuning.pretraining",
    "adopt_statistics": "autotailor.accuracy.calibration",
    "calibrate": "autotailor.accuracy.calibration",
    "evaluate": "autotailor.finetuning.weight_sharing",
    "finetune": "autotailor.finetuning.weight_sharing",
    "pretrain": "autotailor.finetuning.pretraining",
    "train_scaled": "autotailor.finetuning.scaled",
}
__getattr__ = attach(__name__, _HOMES)
