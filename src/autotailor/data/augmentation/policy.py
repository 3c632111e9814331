"""Policies of single training images, made of RandAugment, TrivialAugment and random erasing of torchvision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from autotailor.data.augmentation.config import STRENGTHS, AugmentationConfig
from autotailor.data.augmentation.drawing import drawing

POLICY = 20  # seed word that keeps these random numbers apart from those of order, crops and mixtures


class Policy:
    """Changes training images one by one; random numbers depend on (seed, epoch, position in the epoch) alone.

    Pictures are distorted as 8-bit PIL images, in which PIL computes several times faster than PyTorch does. What lies
    outside of a turned or shifted picture, or is erased, gets the mean colour.

    Args:
        config: of the augmentation.
        seed: of the training.
        mean: of each channel of the data, 0 to 1.

    Attributes:
        distorts: whether pictures are distorted before they are normalised.
    """

    def __init__(self, config: AugmentationConfig, seed: int, mean: Sequence[float]) -> None:
        from torchvision.transforms import v2

        how: dict[str, Any] = {
            "interpolation": v2.InterpolationMode.BILINEAR,
            "fill": [round(255 * channel) for channel in mean],
            "num_magnitude_bins": STRENGTHS,
        }
        self._seed = seed
        self.distorts = config.policy != "none"
        self._distort: Callable[[Any], Any] = {
            "none": v2.Identity,
            "randaugment": lambda: v2.RandAugment(config.operations, config.magnitude, **how),
            "trivialaugment": lambda: v2.TrivialAugmentWide(**how),
        }[config.policy]()
        self._erase: Callable[[torch.Tensor], torch.Tensor] = v2.RandomErasing(p=config.erasing, value=0.0)

    def __call__(
        self, picture: Any, normalise: Callable[[Any], torch.Tensor], epoch: int, position: int
    ) -> torch.Tensor:
        """A training image ``[channels, height, width]``, normalised.

        Args:
            picture: cropped; a PIL image in RGB where ``distorts`` is True, else whatever ``normalise`` takes.
            normalise: makes a normalised image of a picture, without drawing random numbers.
            epoch: of the training.
            position: of the image in the epoch.
        """
        with drawing(self._seed, POLICY, epoch, position):
            return self._erase(normalise(self._distort(picture)))
