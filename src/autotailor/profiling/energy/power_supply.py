"""A phone's battery: ``power_supply/*/current_now`` and ``voltage_now``.

Voltages are microvolts everywhere. Currents should be microamperes, and are milliamperes on some phones; a discharge is
negative on some and positive on others. So the sign is dropped, and a current below ``LEAST_UA`` in microamperes, which
no running phone draws, is taken as milliamperes. While a charger is attached the battery says nothing about the phone.
"""

from __future__ import annotations

from dataclasses import dataclass

from autotailor.profiling.energy.base import Files, Gauge, folders, value

SUPPLIES = "class/power_supply/*"
PATTERNS = tuple(f"{SUPPLIES}/{name}" for name in ("type", "status", "current_now", "voltage_now"))
LEAST_UA = 15_000.0


@dataclass(frozen=True)
class PowerSupply(Gauge):
    """A battery that is being discharged; ``paths``: current and voltage.

    Attributes:
        ampere: what one unit of the current is.
    """

    ampere: float

    def watts(self, files: Files) -> float:
        """Power that the battery gives."""
        current, voltage = (value(files, path) for path in self.paths)
        return abs(current) * self.ampere * voltage / 1e6


def find_power_supply(files: Files) -> PowerSupply | None:
    """The battery, where it is being discharged and its current can be read."""
    for supply in folders(files, f"{SUPPLIES}/type"):
        paths = (f"{supply}/current_now", f"{supply}/voltage_now")
        current, voltage = (abs(value(files, path)) for path in paths)
        discharging = (files[f"{supply}/type"], files.get(f"{supply}/status")) == ("Battery", "Discharging")
        if discharging and current > 0 and voltage > 0:
            name = f"battery ({supply.rpartition('/')[2]})"
            return PowerSupply(name, paths, 1e-3 if current < LEAST_UA else 1e-6)
    return None
