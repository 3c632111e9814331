"""Energy: sensors of Linux boards and phones, read on the device.

A new sensor is one file, and one entry in ``SENSORS``. On a device without a sensor energy is None, never 0.
"""

from pathlib import PurePosixPath

from autotailor.profiling.energy import ina3221, power_supply, rapl
from autotailor.profiling.energy.base import Gauge, Sensor
from autotailor.profiling.energy.watch import Watch
from autotailor.profiling.host import sysfs
from autotailor.profiling.transports.base import Transport

SENSORS = (
    (ina3221.PATTERNS, ina3221.find_ina3221),
    (rapl.PATTERNS, rapl.find_rapl),
    (power_supply.PATTERNS, power_supply.find_power_supply),
)
"""For each kind of sensor: the files to read, and the function that finds a sensor in them or returns None.

The first sensor found is used.
"""


def find_sensor(transport: Transport, root: PurePosixPath = sysfs.ROOT) -> Sensor | None:
    """The device's sensor of energy or power; None where the device has none that can be read.

    Raises:
        DeviceError: the device cannot be asked.
    """
    files = sysfs.read(transport, [pattern for patterns, _ in SENSORS for pattern in patterns], root)
    return next((sensor for _, find in SENSORS if (sensor := find(files)) is not None), None)


__all__ = ["SENSORS", "Gauge", "Sensor", "Watch", "find_sensor"]
