"""Parameters of the recalibration of BatchNorm, and of evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autotailor.accuracy.errors import AccuracyError
from autotailor.sections import check_integers, place, read_section

MEMORY_MB = 1024
"""Default of the memory for activations that SubNets share in evaluation, MiB."""


@dataclass(frozen=True)
class CalibrationConfig:
    """BatchNorm recalibration: ``images`` fixed images of the training stream, in batches of ``batch_size``."""

    images: int = 512
    batch_size: int = 128

    def __post_init__(self) -> None:
        check_integers(self, {"images": 2, "batch_size": 2}, place(self), AccuracyError)

    @classmethod
    def from_section(cls, section: Mapping[str, Any]) -> CalibrationConfig:
        """Reads a section of the configuration; raises AccuracyError for unknown keys and values out of range."""
        return read_section(cls, section, "finetune.calibration", AccuracyError)
