"""The training loop of all kinds of training; it can continue from any step with bit-equal results.

No random state is carried from step to step: the images depend on (seed, epoch, index), and all other random numbers of
a step depend on (seed, step). A checkpoint therefore only holds weights, optimizer, position and the losses so far.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import nn

from autotailor.accuracy.determinism import deterministic
from autotailor.data.splits import TrainStream
from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.training.checkpoint import Checkpoint
from autotailor.finetuning.training.config import LoopConfig
from autotailor.finetuning.training.interruption import Interruption, interruptible
from autotailor.finetuning.training.pace import Pace
from autotailor.finetuning.training.watch import Watch

logger = logging.getLogger(__name__)
EPOCH_SHARE = 0.2
"""Share of the time between checkpoints after which the end of an epoch writes a checkpoint: the end of an epoch is a
better place for a checkpoint than the middle of the next epoch."""
Row = dict[str, float]


@dataclass(frozen=True)
class Step:
    """One step of training, the input of the function that computes gradients.

    Attributes:
        images: ``[b, 3, R, R]``, channels last.
        labels: ``[b]``.
        progress: share of the training that is done, 0 to 1.
        random: generator of this step.
    """

    images: torch.Tensor
    labels: torch.Tensor
    progress: float
    random: np.random.Generator


# A function that adds gradients to the parameters and returns the loss.
StepFunction = Callable[[Step], float]


@dataclass
class _Position:
    """The position of a training: the next step, and the losses so far."""

    epoch: int = 0
    batch: int = 0
    loss_sum: float = 0.0
    history: list[Row] = field(default_factory=list)


def learning_rate(config: LoopConfig, step: int, steps: int) -> float:
    """Learning rate at a step: a linear warm-up times half a cosine that falls to 0 over all ``steps``."""
    warm = config.warmup * steps
    factor = min(1.0, (step + 1) / warm) if warm > 0 else 1.0
    return config.lr * factor * 0.5 * (1 + math.cos(math.pi * step / max(1, steps)))


def make_optimizer(module: nn.Module, config: LoopConfig) -> torch.optim.Optimizer:
    """Optimizer over a module's parameters; weight decay applies only to those with more than one axis.

    Raises:
        TrainingError: the module has no trainable parameters.
    """
    parameters = [p for p in module.parameters() if p.requires_grad]
    if not parameters:
        raise TrainingError(f"{type(module).__name__} has no trainable parameters; set requires_grad of its weights")
    groups: list[dict[str, Any]] = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if config.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=config.lr, momentum=0.9, nesterov=True)
    return torch.optim.AdamW(groups, lr=config.lr)


def train(
    module: nn.Module,
    stream: TrainStream,
    config: LoopConfig,
    step: StepFunction,
    path: Path,
    identity: str,
    title: str,
    watch: Watch | None = None,
) -> list[Row]:
    """Trains a module in place, and continues from a checkpoint of the same training if there is one.

    Args:
        module: whose parameters are trained; checkpoints hold its whole state.
        stream: of training images.
        config: of the loop.
        step: adds the gradients of one batch.
        path: of the checkpoint.
        identity: fingerprint of everything that the training depends on.
        title: of the progress bar and of messages.
        watch: measures accuracies after epochs, and takes the metrics of each epoch.

    Returns:
        One row for each epoch: epoch, loss (mean over its steps), lr (of its last step), and the accuracies (percent)
        of the epochs that ``watch`` measured.

    Raises:
        TrainingError: the loss is no longer a finite number, or the module has no trainable parameters.
    """
    with deterministic(config.threads):
        return _Loop(module, stream, config, step, Checkpoint(path, identity), title, watch or Watch()).run()


class _Loop:
    def __init__(
        self,
        module: nn.Module,
        stream: TrainStream,
        config: LoopConfig,
        step: StepFunction,
        checkpoint: Checkpoint,
        title: str,
        watch: Watch,
    ) -> None:
        self._module, self._stream, self._config = module, stream, config
        self._step, self._checkpoint, self._title, self._watch = step, checkpoint, title, watch
        module.to(memory_format=torch.channels_last)
        self._optimizer = make_optimizer(module, config)
        self._batches = stream.num_batches(config.batch_size)
        self._steps = self._batches * config.epochs
        self._position = _Position()
        self._saved = 0.0

    def run(self) -> list[Row]:
        """Runs the remaining epochs."""
        self._restore()
        at = self._position
        done = at.epoch * self._batches + at.batch
        self._saved, pace = time.monotonic(), Pace(self._steps - done)
        with _progress() as progress, interruptible() as interruption:
            task = progress.add_task(self._title, total=self._steps, completed=done)
            while at.epoch < self._config.epochs:
                pace.resume()
                for images, labels in self._stream.batches(at.epoch, self._config.batch_size, start=at.batch):
                    self._one_step(images, labels)
                    progress.advance(task)
                    pace.step(len(images))
                    self._save_after(self._config.checkpoint_seconds)
                    self._act_on(interruption)
                self._end_epoch(pace)
                self._save_after(EPOCH_SHARE * self._config.checkpoint_seconds)
                self._act_on(interruption)
        self._save()
        return at.history

    def _act_on(self, interruption: Interruption) -> None:
        """Writes a checkpoint and ends the process if a signal has arrived."""
        if interruption.number:
            self._save()
            logger.warning("%s was interrupted; the next run continues at this step", self._title)
            interruption.act()

    def _save_after(self, seconds: float) -> None:
        """Writes a checkpoint if the last one is at least this old."""
        if time.monotonic() - self._saved >= seconds:
            self._save()

    def _one_step(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        at, config = self._position, self._config
        number = at.epoch * self._batches + at.batch
        random = np.random.default_rng([config.seed, number])
        torch.manual_seed(int(random.integers(2**62)))
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate(config, number, self._steps)
        self._module.train()
        self._optimizer.zero_grad(set_to_none=True)
        loss = self._step(
            Step(images.contiguous(memory_format=torch.channels_last), labels, number / self._steps, random)
        )
        if not math.isfinite(loss):
            raise TrainingError(
                f"{self._title}: the loss became {loss} in epoch {at.epoch}, step {at.batch}; "
                f"lower lr (now {config.lr}) or set gradient_norm"
            )
        if config.gradient_norm:
            nn.utils.clip_grad_norm_(self._module.parameters(), config.gradient_norm)
        self._optimizer.step()
        at.batch += 1
        at.loss_sum += loss

    def _end_epoch(self, pace: Pace) -> None:
        at, epochs = self._position, self._config.epochs
        row = {
            "epoch": at.epoch,
            "loss": at.loss_sum / max(1, at.batch),
            "lr": self._optimizer.param_groups[0]["lr"],
        }
        accuracies, rate = self._watch.accuracies(self._module, at.epoch, epochs), pace.rate()
        found = ""
        if accuracies is not None:
            row, found = {**row, **accuracies.columns}, f"; {accuracies}"
        logger.info(
            "%s: epoch %d of %d, loss %.4f, %.0f images/s, %s left%s",
            *(self._title, at.epoch + 1, epochs, row["loss"], rate, pace.left(), found),
        )
        self._watch.record({**row, "images_per_second": rate}, at.epoch)
        at.history.append(row)
        at.epoch, at.batch, at.loss_sum = at.epoch + 1, 0, 0.0

    def _save(self) -> None:
        self._checkpoint.write(
            {
                "module": self._module.state_dict(),
                "optimizer": self._optimizer.state_dict(),
                "position": vars(self._position),
            }
        )
        self._saved = time.monotonic()

    def _restore(self) -> None:
        state = self._checkpoint.read()
        if state is None:
            return
        self._module.load_state_dict(state["module"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._position = _Position(**state["position"])
        logger.info("%s continues at epoch %d, step %d", self._title, self._position.epoch, self._position.batch)
        for epoch, row in enumerate(self._position.history):
            self._watch.record(row, epoch)


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns)
