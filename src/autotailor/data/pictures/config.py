"""Parameters that all datasets of pictures share."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from autotailor.data.errors import DataError
from autotailor.data.labels import CLASSIFICATION
from autotailor.sections import Section
from autotailor.values import AboveZero, Bound, Flag, Natural, NotNegative, Number, OneOf, Told, ascends

INTERPOLATIONS = ("bilinear", "bicubic")
BACKGROUNDS = ("white", "black", "drop")
Part = Annotated[float, Bound(gt=0, le=1)]
Crop = Annotated[
    tuple[Part, Part],
    Told("[from, to] with 0 < from <= to <= 1", ascends),
]


class PictureConfig(Section, of="data", error=DataError):
    """Parameters that all datasets of pictures share.

    Attributes:
        name: name of the data in results and messages.
        resolution: side of the images in pixels.
        labels: whether the pictures have labels. Without them the original network teaches alone, and accuracy is
            agreement with it.
        task: what is right (``autotailor.task.tasks``), ``classification``, ``multilabel``, ``segmentation``,
            ``detection``, ``regression`` (numbers), ``embedding`` (vectors) or ``outputs``.
        seed: of order, augmentation and the division into training, validation and test.
        mean: subtracted from pixels between 0 and 1, for each channel. It is the mean that the network was trained
            with.
        std: what remains is divided by it, for each channel.
        crop: in evaluation the shorter side is scaled to resolution / crop before the centre is cut out; 0 stretches
            the whole picture to the square.
        scale: area of a training crop over that of the picture, from and to.
        flip: whether half of the training images are mirrored; false where left and right differ.
        interpolation: of every change of size, antialiased.
        background: what transparent pixels stand over; drop takes the colours stored below them, as torchvision's
            ImageFolder does.
        workers: processes or threads that open pictures; 0 leaves that to the caller.
        memory_gib: validation and test, opened and cropped (150,528 bytes for an image of 224 pixels), and training
            pictures, opened and reduced to what their crops need, are each kept in memory up to this size.
        cache: folder of the file that keeps a larger set while a rule runs, and of what rules have made of pictures
            (``folder``, ``table``, ``masks``, ``coco``), which later rules read in place of the pictures; empty opens
            pictures in each evaluation.
        kind: which dataset reads the section, ``folder``, ``table``, ``masks``, ``coco``, ``source``, ``huggingface``,
            ``webdataset``, ``torchvision`` or ``digits``, where ``name`` is another one.
    """

    name: str
    resolution: Annotated[int, Bound(ge=8)]
    labels: Flag = True
    task: str = CLASSIFICATION
    seed: Natural = 0
    mean: Annotated[tuple[Number, Number, Number], Told("three numbers")] = (0.485, 0.456, 0.406)
    std: Annotated[tuple[AboveZero, AboveZero, AboveZero], Told("three numbers above 0")] = (0.229, 0.224, 0.225)
    crop: Annotated[float, Bound(ge=0, le=1)] = 0.875
    scale: Crop = (0.35, 1.0)
    flip: Flag = True
    interpolation: Annotated[str, OneOf(*INTERPOLATIONS)] = "bilinear"
    background: Annotated[str, OneOf(*BACKGROUNDS)] = "white"
    workers: Natural = 0
    memory_gib: NotNegative = 1.0
    cache: str = ""
    kind: str = field(default="", repr=False, compare=False)

    @property
    def judge(self) -> str:
        """The task, with what its configuration tells it (``task.registry.find``)."""
        return self.task
