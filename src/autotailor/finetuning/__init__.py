"""Training: the original network, the SuperNet's shared weights, and scaled networks to compare with.

The names below are imported on first use, see ``autotailor.lazy``.
"""

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.finetuning.alternatives.distillation import DistilResult, distil
    from autotailor.finetuning.backbone import begin
    from autotailor.finetuning.config import (
        DistilConfig,
        DistillationConfig,
        FinetuneConfig,
        PretrainConfig,
        ScaledConfig,
    )
    from autotailor.finetuning.errors import TrainingError
    from autotailor.finetuning.external_teacher import Teacher
    from autotailor.finetuning.pretraining import PretrainResult, accuracies, pretrain
    from autotailor.finetuning.scaled import ScaledResult, train_scaled
    from autotailor.finetuning.weight_sharing import Begun, FinetuneResult, finetune

__getattr__ = attach(__name__)
