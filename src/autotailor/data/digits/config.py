"""Parameters of the dataset ``digits``."""

from __future__ import annotations

from dataclasses import dataclass, fields

from autotailor.data.digits.distortion import Distortion
from autotailor.data.errors import DataError
from autotailor.data.fractions import check_fractions
from autotailor.sections import check_integers, place


@dataclass(frozen=True)
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
    seed: int = 0
    resolution: int = 32
    train_images: int = 4096
    evaluation_images: int = 2500
    fractions: tuple[float, float, float] = (0.6, 0.2, 0.2)

    def __post_init__(self) -> None:
        super().__post_init__()
        least = {"seed": 0, "resolution": 8, "train_images": 1, "evaluation_images": 1}
        check_integers(self, least, place(self), DataError)
        check_fractions(self, self.fractions)

    @property
    def distortion(self) -> Distortion:
        """The ranges of the distortion alone."""
        return Distortion(**{f.name: getattr(self, f.name) for f in fields(Distortion)})
