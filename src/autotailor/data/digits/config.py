"""Parameters of the dataset ``digits``."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated

from autotailor.data.digits.distortion import Distortion
from autotailor.data.fractions import Fractions
from autotailor.values import Bound, Natural, Positive


class DigitsConfig(Distortion):
    """Parameters of ``digits``; the ranges of its distortion are inherited.

    Attributes:
        name: name of the data in results and messages.
        seed: of the division, of the training images and of the evaluation images.
        resolution: side of the images in pixels.
        train_images: images in each epoch.
        evaluation_images: least number of images that validation and test are each expanded to.
        fractions: shares of the base images for training, validation and test.
    """

    name: str = "digits"
    seed: Natural = 0
    resolution: Annotated[int, Bound(ge=8)] = 32
    train_images: Positive = 4096
    evaluation_images: Positive = 2500
    fractions: Fractions = (0.6, 0.2, 0.2)

    @property
    def distortion(self) -> Distortion:
        """The ranges of the distortion alone."""
        return Distortion(**{f.name: getattr(self, f.name) for f in fields(Distortion)})
