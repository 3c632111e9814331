"""How fast and how warm a device was while it was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotailor.profiling.records.limits import Range

SENSIBLE = Range(-1e12, 1e12)


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
    def from_line(cls, said: object) -> MachineState:
        """Reads ``before`` or ``after`` of a batch's line; values that make no sense are left out."""
        parts: Mapping[str, Any] = said if isinstance(said, dict) else {}
        return cls(_numbers(parts.get("khz")), _numbers(parts.get("celsius")))


def _numbers(said: object) -> dict[str, float]:
    pairs = said.items() if isinstance(said, dict) else ()
    return {name: float(value) for name, value in pairs if SENSIBLE.has(value)}


def change(states: Sequence[MachineState]) -> str:
    """One sentence about the slowest core and the warmest zone, from before the first batch to after the last one."""
    slowest = [min(state.khz.values()) / 1e6 for state in states if state.khz]
    warmest = [max(state.celsius.values()) for state in states if state.celsius]
    return f"{_range('slowest core', slowest, 'GHz', 2)}; {_range('warmest zone', warmest, '°C', 0)}"


def _range(what: str, values: Sequence[float], unit: str, digits: int) -> str:
    if not values:
        return f"{what}: the system does not tell"
    first, last, low, high = (f"{value:.{digits}f}" for value in (values[0], values[-1], min(values), max(values)))
    return f"{what} {first} {unit} before, {last} after (from {low} to {high})"
