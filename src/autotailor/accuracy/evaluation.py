"""Accuracy of networks on an evaluation set, image by image."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from autotailor.accuracy.calibration import as_input, resolution_of
from autotailor.accuracy.errors import AccuracyError
from autotailor.compute.placement import device_of, put
from autotailor.data.splits import EvaluationSet
from autotailor.ir.execution.executor import ElasticModule, Statistics
from autotailor.ir.space.subnet import SubNet

BoolArray = npt.NDArray[np.bool_]
BATCH = 256


@torch.no_grad()
def correctness(network: nn.Module, images: EvaluationSet, resolution: int = 0, batch_size: int = BATCH) -> BoolArray:
    """Whether each image of an evaluation set is classified correctly, ``[n]``, computed where the network is.

    Args:
        network: images to logits; it is put into evaluation mode.
        images: the evaluation set.
        resolution: side to which images are resized, in pixels; 0 leaves their size.
        batch_size: images per forward pass.
    """
    network.eval()
    device = device_of(network)
    right = []
    for batch, labels in images.batches(batch_size):
        logits = network(as_input(batch, device, resolution))
        right.append(logits.argmax(dim=1) == put(labels, device))
    return np.asarray(torch.cat(right).cpu().numpy(), dtype=np.bool_)


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
