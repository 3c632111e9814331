"""A phone's battery: ``power_supply/*/current_now`` and ``voltage_now``.

Voltages are in microvolts on all phones. Currents should be in microamperes, but some phones report milliamperes. The
current of a discharge is negative on some phones and positive on others. So the sign is dropped, and a current below
``LEAST_UA`` microamperes, which is less than any running phone draws, is read as milliamperes. While a charger is
attached, the battery's current does not tell what the phone consumes.
"""

from dataclasses import dataclass

from autotailor.profiling.energy.base import Files, Gauge, folders, value

SUPPLIES = "class/power_supply/*"
PATTERNS = tuple(f"{SUPPLIES}/{name}" for name in ("type", "status", "current_now", "voltage_now"))
LEAST_UA = 15_000.0


@dataclass(frozen=True)
class PowerSupply(Gauge):
    """A battery that is being discharged; ``paths`` hold its current and voltage.

    Attributes:
        ampere: amperes of one unit of the current.
    """

    ampere: float

    def watts(self, files: Files) -> float:
        """Power that the battery delivers."""
        current, voltage = (value(files, path) for path in self.paths)
        return abs(current) * self.ampere * voltage / 1e6


def find_power_supply(files: Files) -> PowerSupply | None:
    """The battery, if it is being discharged and its current and voltage can be read."""
    for supply in folders(files, f"{SUPPLIES}/type"):
        paths = (f"{supply}/current_now", f"{supply}/voltage_now")
        current, voltage = (abs(value(files, path)) for path in paths)
        discharging = (files[f"{supply}/type"], files.get(f"{supply}/status")) == ("Battery", "Discharging")
        if discharging and current > 0 and voltage > 0:
            name = f"battery ({supply.rpartition('/')[2]})"
            return PowerSupply(name, paths, 1e-3 if current < LEAST_UA else 1e-6)
    return None
