"""Accuracy of networks on an evaluation set, image by image, and the losses of SubNets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from autotailor.accuracy.calibration import as_input, resolution_of
from autotailor.accuracy.errors import AccuracyError
from autotailor.compute.placement import device_of, put
from autotailor.data.splits import EvaluationSet, check_labels
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.execution.modules.statistics import Statistics
from autotailor.ir.space.subnet import SubNet
from autotailor.prediction.evaluations.outcome import Outcome

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
BATCH = 256
WORST = 100.0
"""Nats, about the largest loss of a probability that fp32 can hold. A larger loss, and that of outputs which are no
numbers, counts as this, so that a few images do not decide about a mean."""


@torch.no_grad()
def correctness(network: nn.Module, images: EvaluationSet, resolution: int = 0, batch_size: int = BATCH) -> BoolArray:
    """Whether each image of an evaluation set is classified correctly, ``[n]``, computed where the network is.

    Args:
        network: images to logits; it is put into evaluation mode.
        images: the evaluation set.
        resolution: side to which images are resized, in pixels; 0 leaves their size.
        batch_size: images per forward pass.

    Raises:
        DataError: an image has no label.
    """
    check_labels(images)
    network.eval()
    device = device_of(network)
    found = [
        answered(_logits(network, batch, resolution), put(labels, device))
        for batch, labels in images.batches(batch_size)
    ]
    return np.asarray(torch.cat(found).cpu().numpy())


@torch.no_grad()
def predictions(network: nn.Module, images: EvaluationSet, resolution: int = 0, batch_size: int = BATCH) -> IntArray:
    """The class that a network gives each image of an evaluation set, ``[n]``; arguments as of ``correctness``."""
    network.eval()
    classes = [_classes(network, batch, resolution) for batch, _ in images.batches(batch_size)]
    return np.asarray(torch.cat(classes).cpu().numpy(), dtype=np.int64)


@torch.no_grad()
def classify(network: nn.Module, images: torch.Tensor, resolution: int = 0) -> IntArray:
    """The class that a network gives each image ``[n, 3, r, r]``, resized unless ``resolution`` is 0: ``[n]``."""
    return np.asarray(_classes(network, images, resolution).cpu().numpy(), dtype=np.int64)


def _classes(network: nn.Module, images: torch.Tensor, resolution: int) -> torch.Tensor:
    """Classes ``[n]`` where the network is: an accelerator computes on while the next images are prepared."""
    return _logits(network, images, resolution).argmax(dim=1)


def _logits(network: nn.Module, images: torch.Tensor, resolution: int) -> torch.Tensor:
    logits: torch.Tensor = network(as_input(images, device_of(network), resolution))
    return logits


def answered(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Whether the largest logit is the label's, bool ``[n]``.

    NaN is no answer, though PyTorch counts it as the largest number: a network that has diverged would be right on all
    images of the first class.

    Args:
        logits: ``[n, classes]``.
        labels: ``[n]``, on the same device.
    """
    return (logits.argmax(dim=1) == labels) & ~logits.isnan().any(dim=1)


@torch.no_grad()
def evaluate(
    module: ElasticModule,
    subnet: SubNet,
    images: EvaluationSet,
    statistics: Statistics | None,
    batch_size: int = BATCH,
) -> Outcome:
    """Answers and losses of a SubNet with given BatchNorm statistics, image by image.

    Raises:
        AccuracyError: the module is not elastic.
        DataError: an image has no label.
    """
    if not isinstance(module, ElasticModule):
        raise AccuracyError(f"expected an elastic module (SuperNet.module()), not {type(module).__name__}")
    check_labels(images)
    module.activate(subnet).eval()
    module.statistics = statistics
    resolution, device = resolution_of(subnet), device_of(module)
    found = [
        judged(module(as_input(batch, device, resolution)), put(labels, device))
        for batch, labels in images.batches(batch_size)
    ]
    return outcome(found)


def judged(logits: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Whether the largest logit is the label's, and the cross entropy of the label, where the logits are.

    Args:
        logits: ``[n, classes]``.
        labels: ``[n]``, on the same device.

    Returns:
        Answers bool ``[n]``, see ``answered``; losses in nats, at most ``WORST``, float32 ``[n]``.
    """
    losses = functional.cross_entropy(logits.float(), labels, reduction="none")
    return answered(logits, labels), losses.nan_to_num(nan=WORST).clamp(max=WORST)


def outcome(batches: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> Outcome:
    """The outcome of one network from what ``judged`` says of each batch."""
    right, losses = (torch.cat(parts).cpu().numpy() for parts in zip(*batches, strict=True))
    return Outcome(right, losses)


def percent(right: BoolArray) -> float:
    """Accuracy in percent."""
    return 100.0 * float(right.mean())
