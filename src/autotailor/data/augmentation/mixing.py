"""Mixtures of two training images and their labels: MixUp and CutMix of ``torchvision.transforms.v2``.

With images x and labels y of two neighbours of a batch, and one weight λ for the batch,

    x_1' = λ x_1 + (1 - λ) x_2,    x_2' = λ x_2 + (1 - λ) x_1,

and the same for y, where a label is the share of each class. CutMix replaces one rectangle instead, and λ is the share
of the pixels that stay. Neighbours are the images 0 and 1, 2 and 3 ...: a process that has a part of the batch with an
even number of images makes the same mixtures as one process that has the whole batch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import torch
from torch.nn import functional

from autotailor.data.augmentation.config import AugmentationConfig
from autotailor.data.augmentation.drawing import drawing
from autotailor.data.labels import has_numbers
from autotailor.data.splits import Batch, DataSplits

logger = logging.getLogger(__name__)
MIXING = 21  # seed word that keeps these random numbers apart from those of order, crops and policies


class Mixing:
    """Mixes batches; random numbers depend on (seed, step) alone.

    Args:
        config: of the augmentation, with ``mixup`` or ``cutmix`` above 0.
        classes: number of classes; 0 where images have no labels.
        seed: of the training.
    """

    def __init__(self, config: AugmentationConfig, classes: int, seed: int) -> None:
        from torchvision.transforms import v2

        self._classes, self._seed, self._share = classes, seed, config.mixed
        kinds = {v2.MixUp: config.mixup, v2.CutMix: config.cutmix}
        self._mix: Callable[[torch.Tensor, torch.Tensor], Batch] = v2.RandomChoice(
            [kind(alpha=float(alpha)) for kind, alpha in kinds.items() if alpha > 0]
        )

    def __call__(self, images: torch.Tensor, labels: torch.Tensor, step: int) -> Batch:
        """A mixed batch; the last image of an odd number stays as it is, and a whole batch by chance (``mixed``).

        Args:
            images: ``[b, channels, height, width]``.
            labels: ``[b]``, int64; or a share of each class, float32 ``[b, classes]``.
            step: number of the step in the training.

        Returns:
            Images, channels last, and the share of each class in each image, float32 ``[b, classes]``. Without classes
            the labels come back as they were.
        """
        shares = labels if labels.is_floating_point() else self._shares(labels)
        if len(images) > 1:
            with drawing(self._seed, MIXING, step):
                is_mixed = self._share == 1 or torch.rand(()).item() < self._share
                mixed = self._mix(_beside(images), _beside(shares)) if is_mixed else None
            if mixed is not None:
                images, shares = (_apart(each, whole) for each, whole in zip(mixed, (images, shares), strict=True))
        return images.contiguous(memory_format=torch.channels_last), shares if self._classes else labels

    def _shares(self, labels: torch.Tensor) -> torch.Tensor:
        return functional.one_hot(labels, self._classes).float() if self._classes else labels[:, None].float()


def mixing(data: DataSplits, config: AugmentationConfig, seed: int) -> Mixing | None:
    """What mixes the batches of a training; None where the configuration mixes nothing, or labels are masks or boxes.

    CutMix is left out where labels are numbers: a share of the pixels is no share of a length or an age. MixUp stays
    and is the same mean of two pictures and of their numbers, as for regression (Zhang et al., 2018). CutMix is left
    out of signals of height 1, too: torchvision's rectangles have no pixel there.

    Args:
        data: the splits.
        config: of the augmentation.
        seed: of the training.
    """
    if config.mixes and data.has_maps:
        logger.info("data %s: mixup and cutmix are left out, since they mix labels of whole pictures", data.name)
        return None
    if config.cutmix and (reason := _against_cutmix(data)):
        logger.warning("data %s: cutmix is left out, since %s", data.name, reason)
        config = replace(config, cutmix=0.0)
    return Mixing(config, data.num_classes if data.labelled else 0, seed) if config.mixes else None


def _against_cutmix(data: DataSplits) -> str:
    """Why pictures of the data cannot have a rectangle of another one, and what can be; "" where they can."""
    if data.labelled and has_numbers(data.validation.task):
        return "a picture with a part of another one has no number of its own; mixup mixes pictures and numbers alike"
    return "signals of height 1 have no rectangle to replace; mixup mixes them" if data.image()[1] == 1 else ""


def _beside(batch: torch.Tensor) -> torch.Tensor:
    """Two items ``[2, half * c, ...]``: the first of all pairs side by side, and the second of all pairs.

    torchvision mixes each item of a batch with the item before it; of two items these are the neighbours.
    """
    half = len(batch) // 2
    return batch[: 2 * half].reshape(half, 2, *batch.shape[1:]).transpose(0, 1).flatten(1, 2)


def _apart(pair: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
    """Turns the result of ``_beside`` into a batch again, with the last image of an odd number from ``batch``."""
    half = len(batch) // 2
    items = pair.reshape(2, half, *batch.shape[1:]).transpose(0, 1).flatten(0, 1)
    return torch.cat([items, batch[2 * half :]])
