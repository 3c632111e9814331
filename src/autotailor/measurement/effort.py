"""How long whole networks are timed, for ``summary.csv`` and before polishing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autotailor.ir.errors import AutoTailorError
from autotailor.sections import check_integers, read_section


class EffortError(AutoTailorError):
    """The section ``measure`` or ``confirm`` is invalid."""


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
        _check(self.rounds, self.seconds, "measure")

    @classmethod
    def from_section(cls, section: Mapping[str, Any]) -> Effort:
        """Reads a section of the configuration; raises EffortError for unknown keys and values out of range."""
        return read_section(cls, section, "measure", EffortError)


@dataclass(frozen=True)
class ConfirmEffort:
    """Section ``confirm``.

    Attributes:
        rounds: how often each candidate is timed.
        seconds: for which each candidate is timed in each round.
        attempts: how many further SubNets of the front are timed for a budget at most.
        repeated: how many SubNets of ``validation.csv`` are timed again, which tells how far sessions differ.
    """

    rounds: int = 3
    seconds: float = 0.3
    attempts: int = 4
    repeated: int = 5

    def __post_init__(self) -> None:
        _check(self.rounds, self.seconds, "confirm")
        check_integers(self, {"attempts": 0, "repeated": 0}, "confirm", EffortError)

    @classmethod
    def from_section(cls, section: Mapping[str, Any]) -> ConfirmEffort:
        """Reads a section of the configuration; raises EffortError for unknown keys and values out of range."""
        return read_section(cls, section, "confirm", EffortError)


def _check(rounds: int, seconds: float, section: str) -> None:
    if rounds < 2:
        raise EffortError(f"{section}.rounds is {rounds}; one round has no standard error: take 2 or more")
    if not seconds > 0:
        raise EffortError(f"{section}.seconds is {seconds}; take a positive number of seconds, for instance 1")
