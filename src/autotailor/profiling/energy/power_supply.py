"""A phone's battery: ``power_supply/*/current_now`` and ``voltage_now``.

Voltages are microvolts everywhere. Currents should be microamperes, and are milliamperes on some phones; a discharge is
negative on some and positive on others. So the sign is dropped, and a current below ``LEAST_UA`` in microamperes, which
no running phone draws, is taken as milliamperes. While a charger is attached the battery says nothing about the phone.
"""

from __future__ import annotations

from pathlib import Path

from autotailor.profiling.energy.base import Gauge, number, text

LEAST_UA = 15_000.0


class PowerSupply(Gauge):
    """A battery that is being discharged."""

    def __init__(self, battery: Path) -> None:
        self.battery = battery
        self.name = f"battery ({battery.name})"
        current = abs(number(battery / "current_now") or 0.0)
        self.ampere = 1e-3 if current < LEAST_UA else 1e-6

    def watts(self) -> float:
        """Power that the battery gives."""
        current = abs(number(self.battery / "current_now") or 0.0) * self.ampere
        return current * (number(self.battery / "voltage_now") or 0.0) / 1e6


def find_power_supply(root: Path) -> PowerSupply | None:
    """The battery, where it is being discharged and its current can be read."""
    for supply in sorted((root / "class" / "power_supply").glob("*")):
        readable = number(supply / "current_now") and number(supply / "voltage_now")
        if text(supply / "type") == "Battery" and text(supply / "status") == "Discharging" and readable:
            return PowerSupply(supply)
    return None
