"""Accuracy of networks on an evaluation set, image by image."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from autotailor.accuracy.calibration import as_input, resolution_of
from autotailor.accuracy.errors import AccuracyError
from autotailor.compute.placement import device_of
from autotailor.data.splits import EvaluationSet, check_labels
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.execution.modules.statistics import Statistics
from autotailor.ir.space.subnet import SubNet

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
BATCH = 256


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
    return np.asarray(predictions(network, images, resolution, batch_size) == images.labels)


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
    logits: torch.Tensor = network(as_input(images, device_of(network), resolution))
    return logits.argmax(dim=1)


def evaluate(
    module: ElasticModule,
    subnet: SubNet,
    images: EvaluationSet,
    statistics: Statistics | None,
    batch_size: int = BATCH,
) -> BoolArray:
    """Whether a SubNet with given BatchNorm statistics classifies each image correctly: bool ``[n]``."""
    if not isinstance(module, ElasticModule):
        raise AccuracyError(f"expected an elastic module (SuperNet.module()), not {type(module).__name__}")
    module.activate(subnet)
    module.statistics = statistics
    return correctness(module, images, resolution_of(subnet), batch_size)


def percent(right: BoolArray) -> float:
    """Accuracy in percent."""
    return 100.0 * float(right.mean())
