"""Training: the original network, the SuperNet's shared weights, and scaled networks to compare with.

The names below are imported on first use, see ``autotailor.lazy``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.finetuning.config import (
        DistillationConfig,
        FinetuneConfig,
        PretrainConfig,
        ScaledConfig,
    )
    from autotailor.finetuning.errors import TrainingError
    from autotailor.finetuning.external_teacher import Teacher
    from autotailor.finetuning.pretraining import PretrainResult, accuracies, pretrain
    from autotailor.finetuning.scaled import ScaledResult, train_scaled
    from autotailor.finetuning.weight_sharing import FinetuneResult, finetune

__all__ = [
    "DistillationConfig",
    "FinetuneConfig",
    "FinetuneResult",
    "PretrainConfig",
    "PretrainResult",
    "ScaledConfig",
    "ScaledResult",
    "Teacher",
    "TrainingError",
    "accuracies",
    "finetune",
    "pretrain",
    "train_scaled",
]

_HOMES = {
    "DistillationConfig": "autotailor.finetuning.config",
    "FinetuneConfig": "autotailor.finetuning.config",
    "FinetuneResult": "autotailor.finetuning.weight_sharing",
    "PretrainConfig": "autotailor.finetuning.config",
    "PretrainResult": "autotailor.finetuning.pretraining",
    "ScaledConfig": "autotailor.finetuning.config",
    "ScaledResult": "autotailor.finetuning.scaled",
    "Teacher": "autotailor.finetuning.external_teacher",
    "TrainingError": "autotailor.finetuning.errors",
    "accuracies": "autotailor.finetuning.pretraining",
    "finetune": "autotailor.finetuning.weight_sharing",
    "pretrain": "autotailor.finetuning.pretraining",
    "train_scaled": "autotailor.finetuning.scaled",
}
__getattr__ = attach(__name__, _HOMES)
