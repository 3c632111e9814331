"""The training loop of all kinds of training; it can continue from any step with bit-equal results.

No random state is carried from step to step: the images depend on (seed, epoch, index), and all other random numbers of
a step depend on (seed, step). A checkpoint therefore only holds weights, their moving average, the states of optimizer
and loss scaler, the size of micro-batches, the position and the losses so far.

Several processes may train together (``processes``). All of them take the same steps; the first one writes files.
"""

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from torch import nn

from autotailor.accuracy.determinism import deterministic
from autotailor.compute.accelerator import resolve
from autotailor.compute.placement import place, put, put_images
from autotailor.data.augmentation.mixing import Mixing
from autotailor.data.contract import checked
from autotailor.data.splits import Batch, TrainStream
from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.training.config import LoopConfig
from autotailor.finetuning.training.divergence import Guard
from autotailor.finetuning.training.interruption import Interruption, interruptible
from autotailor.finetuning.training.micro_batches import MicroBatches
from autotailor.finetuning.training.optimizers import make_optimizer
from autotailor.finetuning.training.pace import Pace
from autotailor.finetuning.training.precision import LossScaler
from autotailor.finetuning.training.processes.group import Group, join
from autotailor.finetuning.training.processes.team import Team
from autotailor.finetuning.training.schedule import learning_rate
from autotailor.finetuning.training.states.checkpoint import Best, Checkpoint, read_any
from autotailor.finetuning.training.states.contents import Average, Position, Row, State
from autotailor.finetuning.training.steps import Clipping, Step, StepFunction, with_gradients
from autotailor.finetuning.training.watch import Accuracies, Watch
from autotailor.progress.bars import Progress

logger = logging.getLogger(__name__)
EPOCH_SHARE = 0.2
"""Share of the time between checkpoints after which the end of an epoch writes a checkpoint: the end of an epoch is a
better place for a checkpoint than the middle of the next epoch."""


def train(
    module: nn.Module,
    stream: TrainStream,
    config: LoopConfig,
    step: StepFunction,
    path: Path,
    identity: str,
    title: str,
    watch: Watch | None = None,
    resume_from: str | None = None,
    scales: Mapping[str, float] | None = None,
    mix: Mixing | None = None,
) -> list[Row]:
    """Trains a module in place, and continues from a checkpoint of the same training if there is one.

    Beside the checkpoint stands that of the best state that ``watch`` measured. Afterwards the module is in its last
    state, or in the best one if ``watch`` says so.

    Args:
        module: whose parameters are trained, on ``config.accelerator``, where the module stays; checkpoints hold its
            whole state.
        stream: of training images.
        config: of the loop.
        step: adds the gradients of one batch.
        path: of the checkpoint.
        identity: fingerprint of everything that the training depends on.
        title: of the progress bar and of messages.
        watch: measures accuracies after epochs, and takes the metrics of each epoch.
        resume_from: checkpoint of another training, from which this one goes on where it has no checkpoint of its own.
        scales: factor of the learning rate by name of the parameter; 1 for others.
        mix: mixes the images of each batch.

    Returns:
        One row for each epoch: epoch, loss (mean over its steps), lr (of its last step), and the accuracies (percent)
        of the epochs that ``watch`` measured.

    Raises:
        TrainingError: the loss is no longer a finite number or jumped further than ``config.spike`` allows, the module
            has no trainable parameters, or training cannot go on from ``resume_from``.
    """
    group = join(config)
    with deterministic(config.threads, resolve(config.accelerator)):
        checkpoint = Checkpoint(path, group.text_of_first(identity))
        loop = _Loop(module, stream, config, step, checkpoint, title, watch or Watch(), scales, mix, group)
        return loop.run(resume_from)


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
        scales: Mapping[str, float] | None,
        mix: Mixing | None,
        group: Group,
    ) -> None:
        self._module, self._stream, self._config, self._mix = module, stream, config, mix
        self._step, self._checkpoint, self._title, self._watch = step, checkpoint, title, watch
        self._device = resolve(config.accelerator)
        place(module, self._device)
        group.copy_first(module)
        self._group, self._team = group, Team(group, module, self._device, config.sync_batch_norm)
        self._micro_batches = MicroBatches(module, step, config.micro_batch, title, self._team)
        self._scaler = LossScaler(config.precision, self._device)
        self._optimizer = make_optimizer(module, config.optimizer, config.lr, config.weight_decay, scales)
        self._batches = stream.num_batches(config.batch_size)
        self._steps = self._batches * config.epochs
        self._saved, self._saved_at = 0.0, (0, 0)
        self._average = Average(module, config.ema) if config.ema else None
        self._state = State(module, self._optimizer, self._average, self._scaler, self._micro_batches)
        self._best, self._guard = Best(checkpoint), Guard(config, step, title)

    @property
    def _position(self) -> Position:
        return self._state.position

    def run(self, resume_from: str | None) -> list[Row]:
        """Runs the remaining epochs."""
        self._restore(resume_from)
        self._check_processes()
        self._warn_of_large_batch()
        at = self._position
        done = at.epoch * self._batches + at.batch
        self._saved, pace = time.monotonic(), Pace(self._steps - done)
        with _progress(self._group.is_first) as progress, interruptible() as interruption:
            task = progress.add_task(self._title, total=self._steps, completed=done)
            while at.epoch < self._config.epochs and not self._watch.is_over():
                pace.resume()
                for images, labels in self._batches_from(at.epoch, at.batch):
                    signal = self._one_step(images, labels, interruption.arrived)
                    progress.advance(task)
                    pace.step(len(images) * self._group.size)
                    self._say_cost(pace, len(images) * self._group.size)
                    self._save_after(self._config.checkpoint_seconds)
                    self._act_on(interruption, signal)
                self._end_epoch(pace)
                self._save_after(EPOCH_SHARE * self._config.checkpoint_seconds)
                self._act_on(interruption, self._team.signal(interruption.arrived()))
        self._save()
        self._team.signal(0)  # all processes wait here until the first one has written its files
        if not self._load_best() and self._average:
            self._average.apply()
        return at.history

    def _say_cost(self, pace: Pace, batch: int) -> None:
        """Says once, from a timed step, what the training costs, so that a person can end it before."""
        if (cost := pace.cost()) is not None:
            logger.info(
                "%s: %d epochs of %d steps, %d images in each step; they take about %s (one step, timed)",
                *(self._title, self._config.epochs, self._batches, batch, cost),
            )

    def _load_best(self) -> bool:
        """Gives the module its best state, where that is asked for and known; returns whether it has."""
        if not self._watch.keeps_best:
            return False
        loaded = self._best.load(self._module, self._title)
        if not loaded and self._position.history and self._group.is_first:
            logger.warning(
                "%s: keep is best, and no accuracy was measured while this training ran, so that its last state is "
                "kept; remove %s to train again with the panel",
                *(self._title, self._checkpoint.path),
            )
        return loaded

    def _batches_from(self, epoch: int, start: int) -> Iterator[Batch]:
        """This process's part of the batches."""
        return checked(self._stream.shards(epoch, self._config.batch_size, start, self._group.shard))

    def _act_on(self, interruption: Interruption, signal: int) -> None:
        """Writes a checkpoint and ends the process if a signal has arrived in one of the processes.

        No process ends before the first one has written: torchrun ends all others as soon as one has ended.
        """
        if signal:
            interruption.number = signal
            self._save()
            self._team.signal(0)
            logger.warning("%s was interrupted; the next run continues at this step", self._title)
            interruption.act()

    def _save_after(self, seconds: float) -> None:
        """Writes a checkpoint if the last one is at least this old."""
        if time.monotonic() - self._saved >= seconds:
            self._save()

    def _one_step(self, images: torch.Tensor, labels: torch.Tensor, signal: Callable[[], int]) -> int:
        """Takes one step; returns the signal that has arrived before its end in one of the processes."""
        at, config = self._position, self._config
        number = at.epoch * self._batches + at.batch
        random = np.random.default_rng([config.seed, number])
        seed = int(random.integers(2**62))
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate(config, number, self._steps) * group.get("lr_scale", 1.0)
        self._module.train()
        images, labels = put_images(images, self._device), put(labels, self._device)
        if self._mix:
            images, labels = self._mix(images, labels, number)
        step = Step(images, labels, number / self._steps, random, self._scaler.factor / self._group.size)
        agreed = self._micro_batches.gradients(step, seed + self._group.rank, signal)
        loss = agreed.loss if agreed.loss is not None else math.nan
        self._guard.check(loss, (at.epoch, at.batch), self._healthy())
        with with_gradients(self._optimizer, self._module):
            self._scaler.unscale(self._optimizer)
            self._clip()
            self._scaler.step(self._optimizer)
        if self._average:
            self._average.update(number + 1)
        at.batch += 1
        at.loss_sum += loss
        return agreed.signal

    def _clip(self) -> None:
        if isinstance(self._step, Clipping):
            self._step.clip()
        elif self._config.gradient_norm:
            parameters = [parameter for group in self._optimizer.param_groups for parameter in group["params"]]
            nn.utils.clip_grad_norm_(parameters, self._config.gradient_norm)

    def _end_epoch(self, pace: Pace) -> None:
        at, epochs = self._position, self._config.epochs
        row = {
            "epoch": at.epoch,
            "loss": at.loss_sum / max(1, at.batch),
            "lr": learning_rate(self._config, at.epoch * self._batches + at.batch - 1, self._steps),
        }
        rate, accuracies, told = pace.rate(), self._measure(), ""
        if accuracies is not None:
            row, told = {**row, **accuracies.columns}, f"; {accuracies}"
        logger.info(
            "%s: epoch %d of %d, loss %.4f%s%s",
            *(self._title, at.epoch + 1, epochs, row["loss"], pace.said(rate), told),
        )
        self._watch.record(row if rate is None else {**row, "images_per_second": rate}, at.epoch)
        at.history.append(row)
        at.epoch, at.batch, at.loss_sum = at.epoch + 1, 0, 0.0

    def _measure(self) -> Accuracies | None:
        """Accuracies after the epoch of the state that would be kept now, which is written if it is the best."""
        at = self._position
        with self._average.applied() if self._average else nullcontext():
            accuracies = self._watch.accuracies(self._module, at.epoch, self._config.epochs)
            if accuracies is not None and accuracies.score > at.best:
                at.best = accuracies.score
                if self._group.is_first:
                    self._best.write(self._module, at.epoch, at.best)
        return accuracies

    def _healthy(self) -> Path | None:
        """The newest checkpoint from whose weights a finite loss followed; None where there is none."""
        at, last = self._position, self._checkpoint
        path = last.previous if self._saved_at == (at.epoch, at.batch) else last.path
        return path if path.is_file() else None

    def _save(self) -> None:
        if self._group.is_first:
            self._checkpoint.keep()
            self._checkpoint.write(self._state.contents())
        self._saved, self._saved_at = time.monotonic(), (self._position.epoch, self._position.batch)

    def _check_processes(self) -> None:
        """Raises TrainingError where the processes would not take the same steps."""
        size = min(self._config.batch_size, len(self._stream))
        if size % self._group.size:
            raise TrainingError(
                f"{self._title}: the {size} images of an epoch cannot be divided equally among {self._group.size} "
                f"processes; choose fewer processes"
            )
        at = self._position
        self._team.check_same(
            "(images, epoch, step, micro_batch)",
            (len(self._stream), at.epoch, at.batch, self._micro_batches.size),
            "all machines must see the same data and, in the same folder, the same checkpoint",
        )

    def _warn_of_large_batch(self) -> None:
        """Says that each epoch is one step where a batch holds more images than an epoch, as nobody wants it."""
        images, batch = len(self._stream), self._config.batch_size
        if batch > images and self._group.is_first:
            logger.warning(
                "%s: batch_size is %d, and an epoch has %d images, so that each epoch is one step of %d images; choose "
                "a smaller batch_size or more epochs",
                *(self._title, batch, images, images),
            )

    def _restore(self, other: str | None) -> None:
        state = self._checkpoint.read()
        if state is not None:
            self._load(state, self._checkpoint.path)
            self._saved_at = (self._position.epoch, self._position.batch)
        elif other:
            self._load(read_any(Path(other)), Path(other))
            if self._position.epoch == self._config.epochs:
                raise self._refusal(
                    Path(other), f"it has {self._config.epochs} epochs, so that none is left; raise epochs"
                )
            self._position.best = -math.inf  # the other training's best state is not at hand
        else:
            return
        logger.info(
            "%s continues at epoch %d, step %d", self._title, self._position.epoch + 1, self._position.batch + 1
        )
        for epoch, row in enumerate(self._position.history):
            self._watch.record(row, epoch)

    def _load(self, state: Mapping[str, Any], path: Path) -> None:
        try:
            self._state.load(state)
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            raise self._refusal(path, str(error)) from error
        if self._position.batch > self._batches or self._position.epoch > self._config.epochs:
            raise self._refusal(path, "it has more steps than this training")

    def _refusal(self, path: Path, why: str) -> TrainingError:
        return TrainingError(
            f"{self._title} cannot go on from {path}: {why}. Network, data, "
            f"batch_size and optimizer must be those of the training that wrote it; lr and weight_decay may differ"
        )


def _progress(is_shown: bool) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, disable=not is_shown)
