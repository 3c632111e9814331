"""Energy: sensors of Linux boards and phones, and the meter that reads them. One file and one line make a new sensor.

A sensor is found under a root folder (``/sys``; a copy of one in tests), and is read as joules that have flown or as
watts that flow. Where there is none, energy is unavailable: it is None, never 0.
"""

from __future__ import annotations

from pathlib import Path

from autotailor.profiling.energy.base import Counter, Gauge, Sensor
from autotailor.profiling.energy.ina3221 import find_ina3221
from autotailor.profiling.energy.meter import Meter
from autotailor.profiling.energy.power_supply import find_power_supply
from autotailor.profiling.energy.rapl import find_rapl

SENSORS = (find_ina3221, find_rapl, find_power_supply)
"""Each answers with a sensor, or None where the machine has none; the first that has one is used."""


def find_sensor(root: Path = Path("/sys")) -> Sensor | None:
    """The machine's sensor of energy or power; None: unavailable."""
    return next((sensor for find in SENSORS if (sensor := find(root)) is not None), None)


__all__ = ["SENSORS", "Counter", "Gauge", "Meter", "Sensor", "find_sensor"]
