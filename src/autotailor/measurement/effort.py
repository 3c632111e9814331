"""How long whole networks are timed for ``summary.csv``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autotailor.ir.errors import AutoTailorError
from autotailor.sections import read_section


class EffortError(AutoTailorError):
    """The section ``measure`` is invalid."""


@dataclass(frozen=True)
class Effort:
    """Section ``measure``.

    Attributes:
        rounds: how often each network is timed; the standard error is that of the mean of the rounds.
        seconds: for which each network is timed in each round.
    """

    rounds: int = 5
    seconds: float = 1.0

    def __post_init__(self) -> None:
        if self.rounds < 2:
            raise EffortError(f"measure.rounds is {self.rounds}; one round has no standard error: take 2 or more")
        if not self.seconds > 0:
            raise EffortError(f"measure.seconds is {self.seconds}; take a positive number of seconds, for instance 1")

    @classmethod
    def from_section(cls, section: Mapping[str, Any]) -> Effort:
        """Reads a section of the configuration; raises EffortError for unknown keys and values out of range."""
        return read_section(cls, section, "measure", EffortError)
