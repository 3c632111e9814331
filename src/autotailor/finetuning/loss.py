"""A loss of the user's (``finetune.loss``: ``module:function``), in the place of distillation.

The function is called for each SubNet of each step as ``function(logits, labels, teacher, config)``:

* ``logits``: of the SubNet, for a classifier ``[b, classes]``, float32, with gradient; a tuple of several outputs;
* ``labels``: targets of the task (``data.task``), for classification ``[b]``, int64; -1 for pictures without labels,
  where ``config.distillation.weight`` is 1. Where ``config.augmentation`` mixes labelled images (``mixup``,
  ``cutmix``), the share of each class in each image, float32 ``[b, classes]``;
* ``teacher``: logits of the teacher, ``[b, classes]``, without gradient;
* ``config``: the ``FinetuneConfig``, with ``distillation`` and ``label_smoothing``.

It returns a scalar tensor, the mean over the batch. It must draw no random number and keep no state between calls,
because SubNets run side by side and a training goes on bit by bit after an interruption.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from autotailor.data.labels import UNKNOWN
from autotailor.finetuning.config import FinetuneConfig
from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.lesson import lesson_of
from autotailor.project.factory import FAILURES, find_factory, raised
from autotailor.task.interface import Task

Loss = Callable[[Any, torch.Tensor, Any, FinetuneConfig], torch.Tensor]


def make_loss(config: FinetuneConfig, task: Task, classes: int, independent: bool, labelled: bool = True) -> Loss:
    """The loss that a configuration asks for: the user's, checked on a tiny batch, or that of the task.

    Args:
        config: of the training.
        task: of the data.
        classes: number of classes.
        independent: see ``Lesson``.
        labelled: whether the images have labels.

    Raises:
        TrainingError: the user's function cannot be imported, or does not return a finite scalar with a gradient.
    """
    if config.loss is not None:
        return _checked(config.loss, config, task, classes, labelled)

    def distil(logits: Any, labels: torch.Tensor, teacher: Any, config: FinetuneConfig) -> torch.Tensor:
        return task.loss(logits, labels, teacher, lesson_of(config, independent))

    return distil


def _checked(source: str, config: FinetuneConfig, task: Task, classes: int, labelled: bool) -> Loss:
    """The function that a source names, after a call with a few images.

    There are fewer or more images than classes: where both numbers are equal, a function that confuses labels ``[b]``
    with shares ``[b, classes]`` would compute something wrong from them and pass.
    """
    where = f"finetune.loss {source}"
    function: Loss = find_factory(source, where, TrainingError)
    if task.has_boxes:  # of its network's heads nothing is known here
        return function
    count = 4 if classes != 4 else 5
    generator = torch.Generator().manual_seed(0)
    labels, kind = _labels(config, task, count, classes, labelled)
    shape = (count, classes, *(labels.shape[1:] if task.has_maps else ()))
    student, teacher = (torch.randn(*shape, generator=generator) for _ in range(2))
    student.requires_grad_(True)
    expected = (
        f"expected a scalar tensor with a gradient from function(logits, labels, teacher, config), where labels are "
        f"{kind}"
    )
    try:
        value = function(student, labels, teacher, config)
    except FAILURES as error:
        raise TrainingError(f"{where} failed on {count} images: {raised(error)}; {expected}") from error
    if not isinstance(value, torch.Tensor) or value.ndim or not value.requires_grad:
        answer = f"a tensor of shape {list(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
        raise TrainingError(f"{where} returned {answer} for {count} images; {expected}")
    if not value.isfinite():
        raise TrainingError(f"{where} returned {value.item()} for {count} images; expected a finite number")
    return function


def _labels(config: FinetuneConfig, task: Task, count: int, classes: int, labelled: bool) -> tuple[torch.Tensor, str]:
    """Labels of some images, as the training of a configuration has them, and what they are in words."""
    labels, kind = task.examples(count, classes)
    if not labelled:
        return torch.full_like(labels, UNKNOWN), f"{kind} and all {UNKNOWN}, because the pictures have none"
    if not config.augmentation.mixes or task.has_maps:
        return labels, kind
    shares = labels if labels.is_floating_point() else functional.one_hot(labels, classes).float()
    mixed = 0.75 * shares + 0.25 * shares.roll(1, 0)
    return mixed, "the shares of classes, float32 [b, classes], because augmentation.mixup or cutmix is above 0"
