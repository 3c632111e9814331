"""Parameters of the sensitivity stage."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Self

from autotailor.accuracy.config import ACCURACY, DIVERGENCE, MEMORY_MB, CalibrationConfig
from autotailor.compute.accelerator import Accelerator
from autotailor.ir.errors import AutoTailorError
from autotailor.sections import Section
from autotailor.values import Bound, Natural, OneOf, Positive, UnfitError


class SensitivityError(AutoTailorError):
    """Sensitivities cannot be measured, or do not fit the space."""


class SensitivityConfig(Section, of="sensitivity", error=SensitivityError):
    """How accuracies are measured.

    Attributes:
        images: validation images on which the drops of single modifications are measured, spread evenly over the set. 0
            takes all. Candidates of a budget are measured on the whole set nevertheless.
        batch_size: images in each forward pass.
        judge: what says how good SubNets are beside their right answers: the losses of labels (accuracy), or how far
            all outputs are from those of the largest SubNet (divergence), which a few hundred images tell more of. auto
            is divergence for weights that arrive, and accuracy for those that the workflow trains.
        evaluations: SubNets that are evaluated on the validation set beside the single modifications. Accuracy is
            predicted from all of them, their right answers and their losses. With 0, the prediction is the sum of
            single drops.
        validate_subnets: random SubNets whose predicted accuracy is compared with the measured one, on the test set.
        seed: of these SubNets.
        threads: PyTorch's threads.
        workers: SubNets that are evaluated side by side. Results do not depend on it.
        memory_mb: memory for activations that are kept, in MiB, all workers together. SubNets whose first operators are
            alike compute them once. 0 keeps none. Results do not depend on it.
        accelerator: as at the top level.
        calibration: BatchNorm recalibration, the same as in finetuning.
    """

    images: Natural = 0
    batch_size: Positive = 256
    judge: Annotated[str, OneOf("auto", ACCURACY, DIVERGENCE)] = "auto"
    evaluations: Natural = 20
    validate_subnets: Annotated[int, Bound(ge=2)] = 20
    seed: Natural = 0
    threads: Positive = 1
    workers: Positive = 1
    memory_mb: Natural = MEMORY_MB
    accelerator: Accelerator = "cpu"
    calibration: CalibrationConfig = field(default_factory=CalibrationConfig)

    def __post_init__(self) -> None:
        if self.images == 1:
            raise UnfitError(
                "images",
                "expected 0 (all validation images) or at least 2, not 1: the standard error of a drop needs several "
                "images",
            )

    @classmethod
    def from_section(
        cls, section: Mapping[str, Any], calibration: Mapping[str, Any] | None = None, *, where: str | None = None
    ) -> Self:
        """Reads the section; ``finetune.calibration`` counts where it is given."""
        given = isinstance(section, Mapping) and calibration is not None
        return super().from_section({**section, "calibration": calibration} if given else section, where=where)
