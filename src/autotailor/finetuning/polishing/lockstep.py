"""Several SubNets trained side by side on the same images, each with weights of its own.

A batch is prepared, and shown to the teacher, once for all SubNets, or once for all of one resolution
(``Task.at_side``). No SubNet's weights depend on which others are
trained beside it: the optimizers compute each weight by itself, and gradients are scaled for each SubNet alone.
Training in float16 is an exception, where all share one factor of the loss, and an overflow in one leaves the step of
all out.

Where several processes train together, each has a part of every batch. SubNets then run in turn, because the processes
exchange the statistics of BatchNorm in the order of the layers.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import torch
from torch import nn

from autotailor.compute.compilation import compiled
from autotailor.compute.placement import device_of, place
from autotailor.compute.turns import InTurn, executor
from autotailor.data.splits import sized
from autotailor.finetuning.external_teacher import Teacher
from autotailor.finetuning.lesson import lesson_of
from autotailor.finetuning.polishing.config import PolishConfig
from autotailor.finetuning.polishing.features import feature_loss, featured, features_of
from autotailor.finetuning.training.precision import forward
from autotailor.finetuning.training.steps import Step
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.task.interface import Task

logger = logging.getLogger(__name__)
Outputs = tuple[Any, ...]
"""Logits, and the tensors that lead to them where ``config.features`` or ``config.streams`` ask for these."""


class Lockstep:
    """One step of training for all SubNets.

    A SubNet whose loss is not a finite number takes no step, and statistics of BatchNorm that such images left without
    finite numbers are those of before; when no SubNet's loss is finite, the loss of the step is NaN. None of several
    processes knows the loss of another one's images. So several processes add up gradients in any case, and a SubNet
    whose sums are not finite takes no step. Processes that share statistics of BatchNorm break, and take back, the same
    statistics.

    Args:
        students: standalone SubNets, images to logits, that share no parameters, on the device that trains.
        resolutions: sides of their images in pixels; 0 leaves the size of the data.
        teacher: of all of them.
        config: of the training.
        task: whose loss is minimised.
        independent: see ``Lesson``.
        streams: tensors that blocks hand on, and the axis of their channels.

    Attributes:
        stopped: numbers of the SubNets that take no steps any more.
    """

    def __init__(
        self,
        students: Sequence[nn.Module],
        resolutions: Sequence[int],
        teacher: Teacher,
        config: PolishConfig,
        task: Task,
        independent: bool = False,
        streams: Mapping[str, int] | None = None,
    ) -> None:
        self._students, self._resolutions = students, resolutions
        device = device_of(students[0])
        self._teacher = place(teacher.network, device).eval()
        self._axes = dict(streams or {}) if config.streams else {}
        self._shown, *self._own = (
            features_of(each, self._axes) if config.features or config.streams else ()
            for each in (self._teacher, *students)
        )
        if config.frozen:
            for network, names in zip((self._teacher, *students), (self._shown, *self._own), strict=True):
                if isinstance(network, GraphModule):
                    network.fold(names)
        self._teacher = featured(self._teacher, self._shown)
        self._computing = [featured(each, names) for each, names in zip(students, self._own, strict=True)]
        if config.compile:
            self._teacher, self._computing = compiled(self._teacher), [compiled(student) for student in students]
        self._seen, self._config = [teacher.sees(side, task.at_side) for side in resolutions], config
        self._task, self._lesson = task, lesson_of(config, independent)
        self._warned, self.stopped = set[int](), set[int]()
        self._pool = InTurn() if config.world > 1 else executor(config.workers, device, "polish")

    def __call__(self, batch: Step) -> float:
        """Adds gradients; returns the mean loss over the SubNets that take a step."""
        going = [number for number in range(len(self._students)) if number not in self.stopped]
        sides = dict.fromkeys(self._seen[number] for number in going)
        targets = {side: self._pool.submit(self._teach, batch.images, side) for side in sides}  # beside SubNets
        for student in self._students if self._config.frozen else ():
            student.eval()

        def run(number: int) -> float:
            return self._train(number, batch, targets[self._seen[number]])

        losses = list(self._pool.map(run, going))
        finite = [loss for loss in losses if math.isfinite(loss)]
        return sum(finite) / len(finite) if finite else math.nan

    @torch.no_grad()
    def losses(self, batch: Step) -> list[float]:
        """The loss of each SubNet in evaluation mode, without gradients."""
        taught = {side: self._teach(batch.images, side) for side in dict.fromkeys(self._seen)}
        for student in self._students:
            student.eval()
        return [self._loss(number, batch, taught[side]).item() for number, side in enumerate(self._seen)]

    def clip(self) -> None:
        """Scales the gradients of each SubNet down to ``config.gradient_norm``."""
        if self._config.world > 1:
            self._leave_out_broken()
        if self._config.gradient_norm:
            for student in self._students:
                nn.utils.clip_grad_norm_(student.parameters(), self._config.gradient_norm)

    def _leave_out_broken(self) -> None:
        """Takes the gradients of SubNets away that are not finite in the sum over all processes."""
        for student in self._students:
            gradients = [p.grad for p in student.parameters() if p.grad is not None]
            if not all(bool(gradient.isfinite().all()) for gradient in gradients):
                student.zero_grad(set_to_none=True)

    def close(self) -> None:
        """Ends the threads."""
        self._pool.shutdown()

    @torch.no_grad()
    def _teach(self, images: torch.Tensor, side: int) -> Outputs:
        return self._outputs(self._teacher, sized(images, side), self._shown)

    def _outputs(self, network: nn.Module, images: torch.Tensor, shown: Sequence[str]) -> Outputs:
        """What a network returns, and behind it the tensors that it shows."""
        outputs = forward(network, images, self._config.precision)
        return outputs if shown and isinstance(outputs, tuple) else (outputs,)

    def _loss(self, number: int, batch: Step, targets: Outputs) -> torch.Tensor:
        """The loss of one SubNet, counted from 0, towards the teacher's outputs."""
        config = self._config
        images = sized(batch.images, self._resolutions[number])
        shown = self._outputs(self._computing[number], images, self._own[number])
        loss = self._task.loss(shown[0], batch.labels, targets[0], self._lesson)
        taught = dict(zip(self._shown, targets[1:], strict=True))
        features: list[torch.Tensor] = []
        streams: list[torch.Tensor] = []
        for name, ours in zip(self._own[number], shown[1:], strict=True):
            if name in taught:  # one of both may have no features to show
                distance = feature_loss(ours, taught[name], self._axes.get(name))
                (streams if name in self._axes else features).append(distance)
        for weight, distances in ((config.features, features), (config.streams, streams)):
            if distances:
                loss = loss + weight * torch.stack(distances).mean()
        return loss

    def _train(self, number: int, batch: Step, targets: Future[Outputs]) -> float:
        """Adds the gradients of one SubNet, counted from 0; returns its loss."""
        student = self._students[number]
        before = [buffer.clone() for buffer in student.buffers()]
        loss = self._loss(number, batch, targets.result())
        is_finite = math.isfinite(value := loss.item())
        if is_finite or self._config.world > 1:
            (loss * batch.loss_scale).backward()  # type: ignore[no-untyped-call]
        if not is_finite:
            self._leave_out(number, value, before)
        return value

    def _leave_out(self, number: int, loss: float, before: Sequence[torch.Tensor]) -> None:
        """Takes back statistics that are no longer finite numbers; says it once for each SubNet."""
        buffers = list(self._students[number].buffers())
        if not all(bool(buffer.isfinite().all()) for buffer in buffers):
            for buffer, old in zip(buffers, before, strict=True):
                buffer.copy_(old)
        if number not in self._warned:
            self._warned.add(number)
            logger.warning(
                "polish: SubNet %d of %d takes no step on images for which its loss is %s; where this comes often, "
                "lower polish.lr or set polish.precision to fp32",
                *(number + 1, len(self._students), loss),
            )
