"""Parameters of the sensitivity stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from autotailor.accuracy.config import MEMORY_MB, CalibrationConfig
from autotailor.compute.accelerator import check_name
from autotailor.sections import check_integers, read_section
from autotailor.sensitivity.errors import SensitivityError


@dataclass(frozen=True)
class SensitivityConfig:
    """How accuracies are measured.

    Attributes:
        images: validation images on which drops are measured, spread evenly over the set; 0: all of them.
        batch_size: images per forward pass.
        evaluations: SubNets that are evaluated beside the single modifications, from which accuracy is predicted; with
            0, the prediction is the sum of single drops (paper, eq. 3).
        validate_subnets: random SubNets whose predicted accuracy is compared with the measured one, on the test set.
        seed: of those SubNets.
        threads: of PyTorch.
        workers: SubNets that are evaluated side by side on the processor; results do not depend on their number.
        memory_mb: memory for activations that SubNets with a common prefix share, all workers together, MiB; 0 keeps
            none. Results do not depend on it.
        accelerator: that evaluates (``autotailor.compute.accelerator``).
        calibration: BatchNorm recalibration, the same as in finetuning.
    """

    images: int = 0
    batch_size: int = 256
    evaluations: int = 20
    validate_subnets: int = 20
    seed: int = 0
    threads: int = 1
    workers: int = 1
    memory_mb: int = MEMORY_MB
    accelerator: str = "cpu"
    calibration: CalibrationConfig = field(default_factory=CalibrationConfig)

    def __post_init__(self) -> None:
        least = {"images": 0, "batch_size": 1, "validate_subnets": 2, "seed": 0, "threads": 1, "workers": 1}
        check_integers(self, {**least, "memory_mb": 0, "evaluations": 0}, "sensitivity", SensitivityError)
        if self.images == 1:
            raise SensitivityError(
                "sensitivity.images: expected 0 (all validation images) or at least 2, not 1: the standard error of a "
                "drop needs several images"
            )
        check_name(self.accelerator, "sensitivity.accelerator")

    @classmethod
    def from_section(
        cls, section: Mapping[str, Any], calibration: Mapping[str, Any] | None = None
    ) -> SensitivityConfig:
        """Reads a section of the configuration.

        Args:
            section: ``sensitivity``, perhaps with a section ``calibration`` in it.
            calibration: the section ``finetune.calibration``, which then counts.

        Raises:
            SensitivityError: a key is unknown, or a value is out of range.
        """
        values = section if calibration is None else {**section, "calibration": calibration}
        if isinstance(values, Mapping) and "calibration" in values:
            values = {**values, "calibration": CalibrationConfig.from_section(values["calibration"])}
        return read_section(cls, values, "sensitivity", SensitivityError)
