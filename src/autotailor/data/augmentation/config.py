"""Parameters of augmentation: section ``augmentation`` of a training."""

from __future__ import annotations

from typing import Annotated

from autotailor.data.errors import DataError
from autotailor.sections import Section
from autotailor.values import Bound, NotNegative, OneOf, Positive, Share

POLICIES = ("none", "randaugment", "trivialaugment")
STRENGTHS = 31  # of RandAugment, from 0 on (``num_magnitude_bins`` of torchvision)


class AugmentationConfig(Section, of="augmentation", error=DataError):
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

    policy: Annotated[str, OneOf(*POLICIES)] = "none"
    operations: Positive = 2
    magnitude: Annotated[int, Bound(ge=0, le=STRENGTHS - 1, expected=f"an integer from 0 to {STRENGTHS - 1}")] = 9
    erasing: Share = 0.0
    mixup: NotNegative = 0.0
    cutmix: NotNegative = 0.0
    mixed: Share = 1.0

    @property
    def changes_images(self) -> bool:
        """Whether single images are changed."""
        return self.policy != "none" or self.erasing > 0

    @property
    def mixes(self) -> bool:
        """Whether two images are mixed, and their labels with them."""
        return self.mixup > 0 or self.cutmix > 0

    def check_maps(self, where: str = "") -> None:
        """Raises DataError where pictures would be turned and shifted without their masks or boxes.

        Args:
            where: the section that holds this one, for the message.
        """
        name = f"{where}.{self.SECTION}" if where else self.SECTION
        if self.policy != "none":
            raise DataError(
                f"{name}.policy: {self.policy} turns and shifts pictures, and not their masks or boxes; set it to none "
                f"(crops, flips and {name}.erasing go with both)"
            )

    def check_signals(self, height: int, *, are_pictures: bool = False, where: str = "") -> None:
        """Raises DataError where signals would be distorted as pictures, or have no rectangle to erase.

        Args:
            height: of a signal; that of a series is 1.
            are_pictures: whether signals are bytes of three channels, which policies distort as pictures.
            where: the section that holds this one, for the message.
        """
        name = f"{where}.{self.SECTION}" if where else self.SECTION
        if self.policy != "none" and not are_pictures:
            raise DataError(
                f"{name}.policy: {self.policy} distorts pictures of bytes in red, green and blue, and would destroy "
                f"signals; set it to none (data.shift, data.noise and {name}.mixup change signals)"
            )
        if self.erasing and height == 1:
            raise DataError(
                f"{name}.erasing: signals of height 1 have no rectangle to erase; set it to 0 (data.shift, data.noise "
                f"and {name}.mixup change signals)"
            )
