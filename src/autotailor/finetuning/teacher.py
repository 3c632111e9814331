"""Checks, before hours of training, that the original network knows the user's data."""

import logging

import numpy as np
import torch
from torch import nn

from autotailor.accuracy.calibration import as_input
from autotailor.accuracy.evaluation import each_image
from autotailor.compute.placement import device_of
from autotailor.data.splits import DataSplits
from autotailor.finetuning.errors import TrainingError
from autotailor.ir.space.metric import FloatArray
from autotailor.task.interface import Asked, Targets, Task
from autotailor.task.registry import of

logger = logging.getLogger(__name__)


def question(
    teacher: nn.Module,
    data: DataSplits,
    resolution: int,
    accept_chance: bool,
    name: str = "the original network",
    key: str = "finetune.accept_chance",
) -> FloatArray:
    """Checks a teacher on the validation set, and returns how right it is about each image, ``[n]``.

    Data without labels say nothing about the network; a message says so, and nothing is checked.

    Args:
        teacher: the original network, or the one that teaches in its place, images to logits.
        data: of the user.
        resolution: side to which images are resized, in pixels; 0 leaves their size.
        accept_chance: whether a failed check only gives a warning.
        name: of the network, for messages.
        key: of ``accept_chance`` in the configuration.

    Raises:
        TrainingError: the task of the data does not trust the network with them (``Task.doubt``).
    """
    answers = _asked(teacher, data, resolution, task := of(data))
    if not data.labelled:
        logger.info("data %s has no labels: whether %s knows these pictures well cannot be checked", data.name, name)
        return answers.values
    doubt = task.doubt(answers, data, resolution, name)
    if doubt and not accept_chance:
        raise TrainingError(f"{doubt}; to train with this network as it is, set {key} to true")
    if doubt:
        logger.warning("%s", doubt)
    return answers.values


def _asked(teacher: nn.Module, data: DataSplits, resolution: int, task: Task) -> Asked:
    """What a teacher says of the validation set."""

    @torch.no_grad()
    def ask(images: torch.Tensor) -> Targets:
        sized = as_input(images, device_of(teacher), resolution)
        return np.asarray(task.answers(task.read(teacher(sized), sized.shape[-1])).cpu().numpy())

    values, answers = each_image(
        *(teacher, data.validation, resolution),
        lambda outputs, targets: task.judge(outputs, targets).values,
        lambda outputs, _: task.answers(outputs),
    )
    return Asked(np.asarray(values, dtype=np.float64), answers, ask)
