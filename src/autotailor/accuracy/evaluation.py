"""Accuracy of networks on an evaluation set, image by image."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from autotailor.data.splits import EvaluationSet, resize

BoolArray = npt.NDArray[np.bool_]
BATCH = 256


@torch.no_grad()
def correctness(network: nn.Module, images: EvaluationSet, resolution: int = 0, batch_size: int = BATCH) -> BoolArray:
    """Whether each image of an evaluation set is classified rightly, ``[n]``.

    Args:
        network: images to logits; put into evaluation mode.
        images: the set.
        resolution: that images are resized to; 0 leaves them as they are.
        batch_size: images per forward pass.
    """
    network.eval()
    right = []
    for batch, labels in images.batches(batch_size):
        sized = resize(batch, resolution) if resolution else batch
        logits = network(sized.contiguous(memory_format=torch.channels_last))
        right.append((logits.argmax(dim=1) == labels).numpy())
    return np.concatenate(right).astype(np.bool_)


def percent(right: BoolArray) -> float:
    """Accuracy in percent."""
    return 100.0 * float(right.mean())
