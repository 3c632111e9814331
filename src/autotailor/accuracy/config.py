"""Parameters of the recalibration of BatchNorm, and of evaluation."""

from __future__ import annotations

from typing import Annotated

from autotailor.accuracy.errors import AccuracyError
from autotailor.compute.accelerator import Accelerator
from autotailor.sections import Section
from autotailor.values import Bound, Natural, Positive, UnfitError

ACCURACY, DIVERGENCE = "accuracy", "divergence"
"""What says how good a SubNet is: right answers, or how far all answers are from those of another network."""
MEMORY_MB = 1024
"""Default of the memory for activations that SubNets share in evaluation, MiB."""


class CalibrationConfig(Section, of="finetune.calibration", error=AccuracyError):
    """BatchNorm recalibration: ``images`` fixed images of the training stream, in batches of ``batch_size``.

    Attributes:
        images: fixed images of the training stream.
        batch_size: images in each pass of the estimation.
    """

    images: Annotated[int, Bound(ge=2)] = 512
    batch_size: Annotated[int, Bound(ge=2)] = 128


class MomentsConfig(Section, of="moments", error=AccuracyError):
    """What readers read in a network that arrives trained, from which its slices follow in closed form.

    Attributes:
        images: training pictures of the one pass that collects what each weight of a network that arrives trained
            reads. Slices follow from it in closed form. With 0 they are the weights as they stand.
        batch_size: pictures in each forward pass.
        ridge: share of the mean square of what is read that is added to the diagonal of each regression.
        rotate: whether linear streams, such as those of inverted residuals, are rotated into the coordinates that
            their readers need, so that a narrower stream keeps more of what is read.
        seed: of the SubNets on which it is decided how much of their statistics of BatchNorm is estimated anew.
        threads: PyTorch's threads.
        accelerator: as at the top level.
    """

    images: Natural = 512
    batch_size: Annotated[int, Bound(ge=2)] = 64
    ridge: Annotated[float, Bound(gt=0, lt=1)] = 3e-3
    rotate: bool = True
    seed: Natural = 0
    threads: Positive = 1
    accelerator: Accelerator = "cpu"

    def __post_init__(self) -> None:
        if self.images == 1:
            raise UnfitError("images", "expected 0 (slices as they stand) or at least 2 pictures, not 1")
