"""How fast and how warm a device was while it was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class MachineState:
    """What the runner read from the system at one moment.

    Attributes:
        khz: core number to its frequency; empty where the system does not tell.
        celsius: thermal zone to its temperature; empty where the system does not tell.
    """

    khz: Mapping[str, float]
    celsius: Mapping[str, float]

    @classmethod
    def from_line(cls, said: Mapping[str, Any]) -> MachineState:
        """Reads ``before`` or ``after`` of a batch's line."""
        return cls(said.get("khz") or {}, said.get("celsius") or {})


def change(states: Sequence[MachineState]) -> str:
    """One sentence about the slowest core and the warmest zone: before the first batch, after the last, and between."""
    slowest = [min(state.khz.values()) / 1e6 for state in states if state.khz]
    warmest = [max(state.celsius.values()) for state in states if state.celsius]
    return f"{_range('slowest core', slowest, 'GHz', 2)}; {_range('warmest zone', warmest, '°C', 0)}"


def _range(what: str, values: Sequence[float], unit: str, digits: int) -> str:
    if not values:
        return f"{what}: the system does not tell"
    first, last, low, high = (f"{value:.{digits}f}" for value in (values[0], values[-1], min(values), max(values)))
    return f"{what} {first} {unit} before, {last} after (from {low} to {high})"
