"""Copies of sysfs with sensors of energy, and what is found and read in them through a transport."""

from pathlib import Path, PurePosixPath

from autotailor.profiling import DeviceConfig
from autotailor.profiling.energy import Gauge, Sensor, find_sensor
from autotailor.profiling.transports.local import LocalTransport

HOST = DeviceConfig(name="host", warmup=1, energy_seconds=1.5)


def write(root: Path, folder: str, **files: object) -> Path:
    """Writes attributes of one device under ``class``; its folder."""
    path = root / "class" / folder
    path.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (path / name).write_text(f"{value}\n")
    return path


def jetson(root: Path) -> Path:
    """An INA3221 with two rails beside a thermometer; its folder."""
    write(root, "hwmon/hwmon0", name="tmp451", temp1_input=40000)
    rails = {"in1_label": "VDD_IN", "in1_input": 5000, "curr1_input": 1200}
    rails |= {"in2_label": "VDD_CPU_GPU_CV", "in2_input": 5000, "curr2_input": 400}
    return write(root, "hwmon/hwmon3", name="ina3221", **rails)


def battery(root: Path, current: int, status: str = "Discharging") -> Path:
    """A battery of 4 V with a current; its folder."""
    values = {"type": "Battery", "status": status, "current_now": current, "voltage_now": 4_000_000}
    return write(root, "power_supply/battery", **values)


def found(root: Path) -> Sensor | None:
    """What is found through the transport."""
    with LocalTransport(HOST) as transport:
        return find_sensor(transport, PurePosixPath(root))


def reading(root: Path, sensor: Sensor) -> dict[str, str]:
    """What the files of a sensor hold now."""
    return {path: (root / path).read_text().strip() for path in sensor.paths}


def watts(root: Path) -> float:
    """What the gauge that is found says."""
    sensor = found(root)
    assert isinstance(sensor, Gauge)
    return sensor.watts(reading(root, sensor))
