"""Classification: one class of each picture, or none where it has no label. A value is 1 where the class is found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from autotailor.task.interface import Asked, Judgement, Lesson, Targets, Task
from autotailor.task.registry import register
from autotailor.task.rows import bounded, probabilities, same_largest, wrong_shape
from autotailor.task.scores import ACCURACY, AGREEMENT

if TYPE_CHECKING:
    import torch

    from autotailor.data.splits import DataSplits


@register
class Classification(Task):
    """Outputs are logits ``[n, classes]``, or what one Softmax, or a Sigmoid for each class, makes of them.

    Targets are classes, int64 ``[n]``; of mixed pictures the share of each class, float32 ``[n, classes]``.
    """

    name = "classification"
    network = "an image classifier"
    reading = "The index of the largest output is the answer."
    target_axes = 1
    score, agreement = ACCURACY, AGREEMENT

    def judge(self, outputs: torch.Tensor, targets: torch.Tensor) -> Judgement:
        """See Task: whether the largest output is the target's, and the cross entropy of the target in nats.

        NaN is no answer, though PyTorch counts it as the largest number: a network that has diverged would be right on
        all images of the first class.
        """
        from torch.nn import functional

        losses = functional.cross_entropy(outputs.float(), targets, reduction="none")
        right = (outputs.argmax(dim=1) == targets) & ~outputs.isnan().any(dim=1)
        return Judgement(right, bounded(losses))

    def answers(self, outputs: torch.Tensor) -> torch.Tensor:
        """See Task: the class of the largest output."""
        return outputs.argmax(dim=1)

    def agree(self, outputs: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        """See Task: whether both give the same class."""
        return same_largest(outputs, others)

    def loss(
        self, outputs: torch.Tensor, targets: torch.Tensor, teacher: torch.Tensor | None, lesson: Lesson
    ) -> torch.Tensor:
        """See Task: cross entropy and distillation."""
        from autotailor.task.distillation import distillation_loss, label_loss

        if teacher is None:
            return label_loss(outputs, targets, lesson.smoothing, lesson.independent)
        return distillation_loss(outputs, targets, teacher, lesson)

    def chance(self, targets: Targets) -> float:
        """See Task: the share of right answers of a network that guesses each class as often as it occurs."""
        return float(np.square(np.bincount(targets) / len(targets)).sum())

    def examples(self, count: int, classes: int) -> tuple[torch.Tensor, str]:
        """See Task."""
        import torch

        return torch.arange(count) % classes, "int64 [b]"

    def misfit(self, outputs: torch.Tensor, classes: int, images: str) -> str:
        """See Task."""
        return wrong_shape(outputs, classes, images) or probabilities(outputs)

    def doubt(self, evaluated: Asked, data: DataSplits, resolution: int, name: str) -> str:
        """See Task."""
        from autotailor.task.order import complaint

        return complaint(evaluated, data, resolution, name)
