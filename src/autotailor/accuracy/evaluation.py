"""How right networks are on an evaluation set, image by image, and the losses of SubNets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt
import torch
from torch import nn

from autotailor.accuracy.calibration import as_input, resolution_of
from autotailor.accuracy.errors import AccuracyError
from autotailor.compute.placement import device_of, put
from autotailor.data.splits import EvaluationSet, check_labels
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.execution.modules.statistics import Statistics
from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import SubNet
from autotailor.prediction.evaluations.outcome import Outcome
from autotailor.task.interface import Judgement, Targets
from autotailor.task.registry import of

BATCH = 256
Read = Callable[[Any, torch.Tensor], torch.Tensor]
"""From outputs and targets of a batch to something of each image."""


def correctness(network: nn.Module, images: EvaluationSet, resolution: int = 0, batch_size: int = BATCH) -> FloatArray:
    """How right a network is about each image of an evaluation set, ``[n]``, computed where the network is.

    The mean is the score (``Task.shares``); of most tasks each number is from 0 to 1.

    Args:
        network: images to outputs; it is put into evaluation mode.
        images: the evaluation set.
        resolution: side to which images are resized, in pixels; 0 leaves their size.
        batch_size: images per forward pass.

    Raises:
        DataError: an image has no label.
    """
    check_labels(images)
    task = of(images)
    (values,) = each_image(
        network, images, resolution, lambda outputs, targets: task.judge(outputs, targets).kept, batch_size=batch_size
    )
    return task.shares(values)


def predictions(network: nn.Module, images: EvaluationSet, resolution: int = 0, batch_size: int = BATCH) -> Targets:
    """What a network answers to each image of an evaluation set (``Task.answers``); arguments as of ``correctness``."""
    task = of(images)
    (answer,) = each_image(network, images, resolution, lambda outputs, _: task.answers(outputs), batch_size=batch_size)
    return answer


@torch.no_grad()
def each_image(
    network: nn.Module, images: EvaluationSet, resolution: int, *reads: Read, batch_size: int = BATCH
) -> list[npt.NDArray[Any]]:
    """What is read of a network's outputs (``Task.read``) for each image; arguments as of ``correctness``.

    An accelerator computes on while the next images are prepared.

    Returns:
        For each of ``reads``, an array with one row for each image.
    """
    network.eval()
    device, task, parts = device_of(network), of(images), list[tuple[torch.Tensor, ...]]()
    for batch, targets in images.batches(batch_size):
        sized, placed = as_input(batch, device, resolution), put(targets, device)
        outputs = task.read(network(sized), sized.shape[-1])
        parts.append(tuple(read(outputs, placed) for read in reads))
    return [torch.cat(parts).cpu().numpy() for parts in zip(*parts, strict=True)]


def evaluate(
    module: ElasticModule,
    subnet: SubNet,
    images: EvaluationSet,
    statistics: Statistics | None,
    batch_size: int = BATCH,
) -> Outcome:
    """Values and losses of a SubNet with given BatchNorm statistics, image by image.

    Raises:
        AccuracyError: the module is not elastic.
        DataError: an image has no label.
    """
    if not isinstance(module, ElasticModule):
        raise AccuracyError(f"expected an elastic module (SuperNet.module()), not {type(module).__name__}")
    check_labels(images)
    module.activate(subnet).eval()
    module.statistics = statistics
    return outcome_of(module, images, resolution_of(subnet), batch_size)


@torch.no_grad()
def outcome_of(network: nn.Module, images: EvaluationSet, resolution: int, batch_size: int) -> Outcome:
    """Values and losses of a network in its present mode, image by image; arguments as of ``correctness``."""
    device, task = device_of(network), of(images)
    judgements = [
        task.judge(task.read(network(sized), sized.shape[-1]), put(labels, device))
        for batch, labels in images.batches(batch_size)
        for sized in (as_input(batch, device, resolution),)
    ]
    return outcome(judgements)


def outcome(batches: Sequence[Judgement]) -> Outcome:
    """The outcome of one network from what its task says of each batch."""
    values, losses, kept = (
        torch.cat(parts).cpu().numpy() for parts in zip(*((b.values, b.losses, b.kept) for b in batches), strict=True)
    )
    return Outcome(values, losses, None if batches[0].counts is None else kept)


def percent(values: FloatArray) -> float:
    """The mean of values of images, in percent."""
    return 100.0 * float(values.mean())
