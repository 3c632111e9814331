"""Uniformly scaled networks for comparison: the same network, scaled and trained alone with the same teacher."""

import copy
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn

from autotailor.accuracy.fingerprint import fingerprint
from autotailor.compute.accelerator import resolve
from autotailor.data.augmentation.mixing import mixing
from autotailor.data.augmentation.stream import augmented
from autotailor.data.splits import DataSplits, sized
from autotailor.finetuning.config import ScaledConfig
from autotailor.finetuning.errors import DivergenceError
from autotailor.finetuning.external_teacher import Teacher
from autotailor.finetuning.lesson import lesson_of, teacher_alone
from autotailor.finetuning.pretraining import StateDict, accuracies, check_network, training_metrics, weights_of
from autotailor.finetuning.training.loop import train
from autotailor.finetuning.training.precision import forward
from autotailor.finetuning.training.states.contents import Row
from autotailor.finetuning.training.steps import Step
from autotailor.task.registry import of

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ScaledResult:
    """The best of the networks trained with the learning rates of the grid.

    Attributes:
        state_dict: weights, contiguous.
        metrics: ``validation_accuracy``, ``test_accuracy`` (percent), ``lr``, ``loss``, ``images`` seen by each trial.
        trials: one row for each learning rate: lr, validation_accuracy, loss; the latter two are NaN where the training
            diverged.
    """

    state_dict: StateDict
    metrics: dict[str, float]
    trials: list[Row]


def train_scaled(
    factory: Callable[[], nn.Module],
    teacher: Teacher,
    data: DataSplits,
    config: ScaledConfig,
    workdir: Path,
    independent: bool = False,
) -> ScaledResult:
    """Trains one network for each learning rate, and keeps the most accurate one on the validation set.

    A rate with which the training diverges is no candidate, because the grid is there to find out which rates work.

    Args:
        factory: the uniformly scaled network (images to logits), untrained; it is called once for each learning rate
            and draws its weights under ``config.seed``.
        teacher: the network that teaches; it is not changed.
        data: the splits; only validation accuracy decides which network is kept.
        config: of the training.
        workdir: folder of one checkpoint per learning rate; made if missing.
        independent: see ``Lesson``.

    Raises:
        TrainingError: a network does not fit the data, training cannot go on, or it diverges with every learning rate.
    """
    config = teacher_alone(config, data)
    check_network(teacher.network, data, teacher.resolution)
    own = copy.deepcopy(teacher.network).eval().requires_grad_(False).to(resolve(config.accelerator))
    teacher = replace(teacher, network=own)
    per_epoch = data.train.num_batches(config.batch_size) * min(config.batch_size, len(data.train))
    epochs = max(config.epochs, -(-config.images // per_epoch))
    trials: list[Row] = []
    best: tuple[dict[str, float], nn.Module] | None = None
    for lr in config.lrs:
        one = replace(config, lr=lr, epochs=epochs)
        try:
            network, history = _train_one(factory, teacher, data, one, Path(workdir), independent)
        except DivergenceError as error:
            logger.warning("%s; the comparison leaves this rate of compare.lrs out", error.happened)
            trials.append({"lr": lr, "validation_accuracy": math.nan, "loss": math.nan})
            continue
        scores = accuracies(network, data, config.threads, config.resolution)
        metrics = scores | training_metrics(history, data, config.batch_size) | {"lr": lr}
        trials.append({key: metrics[key] for key in ("lr", "validation_accuracy", "loss")})
        if best is None or metrics["validation_accuracy"] > best[0]["validation_accuracy"]:
            best = metrics, network
    if best is None:
        raise DivergenceError(
            f"scaled: the training diverged with each of the rates {list(config.lrs)}; name lower ones in compare.lrs"
        )
    return ScaledResult(weights_of(best[1]), best[0], trials)


def _train_one(
    factory: Callable[[], nn.Module],
    teacher: Teacher,
    data: DataSplits,
    config: ScaledConfig,
    workdir: Path,
    independent: bool,
) -> tuple[nn.Module, list[Row]]:
    """Trains one network with one learning rate."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        network = factory()
    check_network(network, data, config.resolution)
    task, lesson = of(data), lesson_of(config, independent)

    def step(batch: Step) -> float:
        with torch.no_grad():
            targets = forward(teacher.network, sized(batch.images, teacher.resolution), config.precision)
        logits = forward(network, sized(batch.images, config.resolution), config.precision)
        loss = task.loss(logits, batch.labels, targets, lesson)
        (loss * batch.loss_scale).backward()  # type: ignore[no-untyped-call]
        return loss.item()

    identity = fingerprint(
        ["scaled", config.identity, data.fingerprint],
        network.state_dict(),
        teacher.network.state_dict(),
    )
    path, title = workdir / f"scaled_lr{config.lr:g}.ckpt", f"scaled, lr {config.lr:g}"
    stream = augmented(data, config.augmentation, config.seed)
    mix = mixing(data, config.augmentation, config.seed)
    return network, train(network, stream, config, step, path, identity, title, mix=mix)
