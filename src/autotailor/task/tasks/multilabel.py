"""Several labels for each picture, each right or wrong: tags, findings, attributes.

A network has one output for each label. The value of a picture is the average precision of its labels, in the order in
which the network puts them. With its labels L, of all labels C, and the outputs z,

    value = 1 / |L| sum over i in L of |{j in L: z_j >= z_i}| / |{j in C: z_j >= z_i}|.

It is 1 where all labels of the picture come before all others, needs no threshold, and is the same before and behind a
Sigmoid. The score is its mean over pictures. A picture without labels, or with all of them, has no order to find: its
value is 1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from autotailor.task.interface import Asked, Judgement, Lesson, Targets, Task
from autotailor.task.registry import register
from autotailor.task.rows import bounded, same_largest, wrong_shape
from autotailor.task.scores import Score

if TYPE_CHECKING:
    import torch

    from autotailor.data.splits import DataSplits

MOST = 1 << 24
"""Pairs of labels that are compared at once, of all pictures together."""


@register
class Multilabel(Task):
    """Outputs are logits ``[n, labels]``, or their Sigmoids; targets are 0 or 1 for each label, ``[n, labels]``."""

    name = "multilabel"
    network = "a network that gives images several labels"
    reading = (
        "Each output belongs to one label, and the larger it is, the likelier the label; the answer is the likeliest."
    )
    target_axes = 2
    score = Score(
        "average precision",
        "most precise",
        "Average precision: how far the labels of a picture come before all others in the network's order, as the mean "
        "over the pictures.",
    )
    agreement = Score(
        "agreement",
        "most faithful",
        "The pictures have no labels: agreement is how far the labels that the original network gives a picture come "
        "before all others in a network's order, as the mean over the pictures.",
        compares=True,
    )

    def judge(self, outputs: torch.Tensor, targets: torch.Tensor) -> Judgement:
        """See Task: average precision, and the mean binary cross entropy of the labels in nats."""
        import torch
        from torch.nn import functional

        labels = targets.float()
        losses = functional.binary_cross_entropy_with_logits(outputs.float(), labels, reduction="none").mean(1)
        rows = max(1, MOST // outputs.shape[1] ** 2)
        parts = zip(torch.split(outputs, rows), torch.split(labels, rows), strict=True)
        values = torch.cat([_average_precision(*part) for part in parts])
        return Judgement(values, bounded(losses))

    def answers(self, outputs: torch.Tensor) -> torch.Tensor:
        """See Task: the labels whose probability is above one half."""
        return (outputs > 0).long()

    def agree(self, outputs: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        """See Task: whether both give the same label the highest probability."""
        return same_largest(outputs, others)

    def loss(
        self, outputs: torch.Tensor, targets: torch.Tensor, teacher: torch.Tensor | None, lesson: Lesson
    ) -> torch.Tensor:
        """See Task: binary cross entropies, and distillation of each output."""
        from autotailor.task.distillation import distillation_loss, label_loss

        shares = targets.to(outputs.dtype) * (1 - lesson.smoothing) + lesson.smoothing / 2
        if teacher is None:
            return label_loss(outputs, shares, 0.0, independent=True)
        return distillation_loss(outputs, shares, teacher, replace(lesson, smoothing=0.0, independent=True))

    def chance(self, targets: Targets) -> float:
        """See Task: a network that orders labels by how often they occur."""
        import torch

        often = torch.from_numpy(targets.mean(axis=0)).expand(len(targets), -1)
        return float(self.judge(often, torch.from_numpy(targets)).values.double().mean())

    def examples(self, count: int, classes: int) -> tuple[torch.Tensor, str]:
        """See Task."""
        import torch

        return (torch.arange(count * classes).reshape(count, classes) % 2).float(), "0 or 1, float32 [b, labels]"

    def misfit(self, outputs: torch.Tensor, classes: int, images: str) -> str:
        """See Task."""
        return wrong_shape(outputs, classes, images)

    def doubt(self, evaluated: Asked, data: DataSplits, resolution: int, name: str) -> str:
        """See Task: whether the network is better than chance, by more than two standard errors."""
        guess = "an order of the labels that is the same for all pictures"
        check = "it was trained on these labels, in this order (the columns of the table), and on"
        return self.no_better(evaluated, data, resolution, f"{name} has {self.score.name}", guess, check)


def _average_precision(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Average precision of each picture ``[n]`` from outputs and labels ``[n, labels]``; 0 where an output is NaN."""
    before = outputs[:, None, :] >= outputs[:, :, None]  # [n, i, j]: whether label j comes before i, or is i
    precision = (before * labels[:, None, :]).sum(2) / before.sum(2).clamp(min=1)
    count = labels.sum(1)
    values = (precision * labels).sum(1) / count.clamp(min=1)
    has_order = (count > 0) & (count < labels.shape[1])
    values = values.where(has_order, values.new_ones(())).clamp(0.0, 1.0)
    return values.where(~outputs.isnan().any(dim=1), values.new_zeros(()))
