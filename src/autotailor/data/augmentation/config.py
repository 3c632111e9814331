"""Parameters of augmentation: section ``augmentation`` of a training."""

from __future__ import annotations

from dataclasses import dataclass

from autotailor.data.errors import DataError
from autotailor.sections import check_integers, check_numbers, place

POLICIES = ("none", "randaugment", "trivialaugment")
STRENGTHS = 31  # of RandAugment, from 0 on (``num_magnitude_bins`` of torchvision)


@dataclass(frozen=True)
class AugmentationConfig:
    """What is done to training images beside crop and flip; images of calibration and evaluation stay as they are.

    Attributes:
        policy: ``randaugment`` distorts each image ``operations`` times with the strength ``magnitude``,
            ``trivialaugment`` once with a random strength.
        operations: distortions of each image by ``randaugment``.
        magnitude: strength of ``randaugment``.
        erasing: probability that a random rectangle of an image becomes the mean colour.
        mixup: alpha of mixtures of two images and their labels; the weight is drawn from Beta(alpha, alpha) for each
            step. 0 mixes none. Where ``cutmix`` is above 0, too, each step draws one of both.
        cutmix: alpha of rectangles that come from another image of the batch; the rectangle's area is drawn from
            Beta(alpha, alpha). 0 replaces none.
        mixed: share of the steps whose images ``mixup`` or ``cutmix`` mixes.
    """

    policy: str = "none"
    operations: int = 2
    magnitude: int = 9
    erasing: float = 0.0
    mixup: float = 0.0
    cutmix: float = 0.0
    mixed: float = 1.0

    def __post_init__(self) -> None:
        where = place(self)
        if self.policy not in POLICIES:
            raise DataError(f"{where}.policy: unknown policy {self.policy!r}; known are {', '.join(POLICIES)}")
        check_integers(self, {"operations": 1, "magnitude": 0}, where, DataError)
        check_numbers(self, {"erasing": 0.0, "mixup": 0.0, "cutmix": 0.0, "mixed": 0.0}, where, DataError)
        if self.magnitude >= STRENGTHS:
            raise DataError(f"{where}.magnitude: expected 0 to {STRENGTHS - 1}, not {self.magnitude}")
        for name in ("erasing", "mixed"):
            if getattr(self, name) > 1:
                raise DataError(f"{where}.{name}: expected a probability, 0 to 1, not {getattr(self, name)}")

    @property
    def changes_images(self) -> bool:
        """Whether single images are changed."""
        return self.policy != "none" or self.erasing > 0

    @property
    def mixes(self) -> bool:
        """Whether two images are mixed, and their labels with them."""
        return self.mixup > 0 or self.cutmix > 0
