"""Parameters of the recalibration of BatchNorm, and of evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autotailor.accuracy.errors import AccuracyError
from autotailor.compute.accelerator import check_name
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


@dataclass(frozen=True)
class MomentsConfig:
    """What readers read in a network that arrives trained, from which its slices follow in closed form.

    Attributes:
        images: training pictures of the one pass; 0 leaves slices as they stand.
        batch_size: pictures per forward pass.
        ridge: share of the mean square of what is read that is added to the diagonal of each regression.
        seed: of the SubNets on which it is decided how much of their statistics is estimated anew.
        threads: of PyTorch.
        accelerator: that computes (``autotailor.compute.accelerator``).
    """

    images: int = 512
    batch_size: int = 64
    ridge: float = 3e-3
    seed: int = 0
    threads: int = 1
    accelerator: str = "cpu"

    def __post_init__(self) -> None:
        check_integers(self, {"images": 0, "batch_size": 2, "seed": 0, "threads": 1}, "moments", AccuracyError)
        if self.images == 1:
            raise AccuracyError("moments.images: expected 0 (slices as they stand) or at least 2 pictures, not 1")
        if not isinstance(self.ridge, (int, float)) or not 0 < self.ridge < 1:
            raise AccuracyError(f"moments.ridge: expected a number above 0 and below 1, not {self.ridge!r}")
        check_name(self.accelerator, "moments.accelerator")

    @classmethod
    def from_section(cls, section: Mapping[str, Any]) -> MomentsConfig:
        """Reads a section of the configuration; raises AccuracyError for unknown keys and values out of range."""
        return read_section(cls, section, "moments", AccuracyError)
