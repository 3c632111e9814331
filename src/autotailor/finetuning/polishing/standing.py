"""How good weights are on the validation set: by right answers, or by how near all answers are to the teacher's.

A few hundred pictures say little of an accuracy: with 175, the difference of two SubNets has an error of some two
points. What a network answers to each picture, compared with the teacher's answer, says more, and needs no labels: on a
pretrained network three SubNets that training had brought nearer to the teacher, by 20 to 50 % of the divergence, had
1 point less to 8 points more on 175 validation pictures, and 4 to 10 points more on 177 test pictures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import torch
from torch import nn

from autotailor.accuracy.calibration import as_input
from autotailor.accuracy.evaluation import BATCH
from autotailor.compute.placement import device_of, put
from autotailor.data.splits import EvaluationSet
from autotailor.finetuning.external_teacher import Teacher
from autotailor.finetuning.training.precision import forward
from autotailor.prediction.evaluations.chance import CLEAR
from autotailor.statistics import accuracy
from autotailor.task.interface import Lesson
from autotailor.task.registry import of


@dataclass(frozen=True)
class Standing:
    """What is known of a SubNet with some weights.

    Attributes:
        accuracy: percent of the validation images.
        error: its clustered standard error, points.
        divergence: mean Kullback-Leibler divergence of the teacher's answers from its own, nats; NaN where accuracy
            judges.
    """

    accuracy: float
    error: float
    divergence: float = math.nan

    @property
    def merit(self) -> float:
        """The higher the better."""
        return self.accuracy if math.isnan(self.divergence) else -self.divergence

    def gains_on(self, before: Standing) -> bool:
        """Whether these weights are better than those of before, and answer no worse beyond chance."""
        room = 0.0 if math.isnan(self.divergence) else CLEAR * self.error
        return self.merit > before.merit and self.accuracy > before.accuracy - room


class Jury:
    """Compares SubNets on the validation set.

    Args:
        images: of the validation set, with labels.
        teacher: whose answers count; None: right answers alone do.
        independent: see ``Lesson``.
    """

    def __init__(self, images: EvaluationSet, teacher: Teacher | None, independent: bool = False) -> None:
        self._images, self._teacher, self._task = images, teacher, of(images)
        self._lesson = Lesson(weight=1.0, independent=independent)
        self._taught_outputs: dict[int, list[Any]] = {}
        self._lock = Lock()

    @torch.no_grad()
    def standing(self, network: nn.Module, resolution: int) -> Standing:
        """Of a network, images to logits, whose images have sides of so many pixels (0: as they are)."""
        network.eval()
        device, parts, apart = device_of(network), list[torch.Tensor](), 0.0
        lessons = self._taught(resolution)
        for number, (images, targets) in enumerate(self._images.batches(BATCH)):
            sized, placed = as_input(images, device, resolution), put(targets, device)
            outputs = forward(network, sized, "fp32")
            parts.append(self._task.judge(self._task.read(outputs, sized.shape[-1]), placed).values.cpu())
            if lessons:
                soft = self._task.loss(outputs, placed, lessons[number], self._lesson)
                apart += float(soft) * len(images)
        values = torch.cat(parts).numpy()
        return Standing(*accuracy(values, self._images.groups), apart / len(values) if lessons else math.nan)

    def _taught(self, resolution: int) -> Sequence[Any]:
        """The teacher's answers to each batch, for students of a resolution; the first that asks computes them."""
        if self._teacher is None:
            return ()
        with self._lock:
            side = self._teacher.sees(resolution, self._task.at_side)
            if side not in self._taught_outputs:
                network = self._teacher.network.eval()
                device, batches = device_of(network), self._images.batches(BATCH)
                answers = [forward(network, as_input(images, device, side), "fp32") for images, _ in batches]
                self._taught_outputs[side] = answers
            return self._taught_outputs[side]
