"""Sensors of energy on copies of sysfs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from autotailor.profiling.energy import Counter, Gauge, Meter, find_sensor


def write(root: Path, folder: str, **files: object) -> Path:
    path = root / "class" / folder
    path.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (path / name).write_text(f"{value}\n")
    return path


def jetson(root: Path) -> Path:
    write(root, "hwmon/hwmon0", name="tmp451", temp1_input=40000)
    rails = {"in1_label": "VDD_IN", "in1_input": 5000, "curr1_input": 1200}
    rails |= {"in2_label": "VDD_CPU_GPU_CV", "in2_input": 5000, "curr2_input": 400}
    return write(root, "hwmon/hwmon3", name="ina3221", **rails)


def battery(root: Path, current: int, status: str = "Discharging") -> Path:
    values = {"type": "Battery", "status": status, "current_now": current, "voltage_now": 4_000_000}
    return write(root, "power_supply/battery", **values)


def test_without_a_sensor_energy_is_unavailable(tmp_path: Path) -> None:
    assert find_sensor(tmp_path) is None
    write(tmp_path, "hwmon/hwmon0", name="coretemp", temp1_input=40000)
    write(tmp_path, "power_supply/AC", type="Mains", online=1)
    assert find_sensor(tmp_path) is None


def test_rapl_adds_packages_and_survives_a_wrap(tmp_path: Path) -> None:
    zones = [
        write(tmp_path, f"powercap/intel-rapl:{i}", name=f"package-{i}", energy_uj=9_000_000, max_energy_range_uj=10**7)
        for i in (0, 1)
    ]
    write(tmp_path, "powercap/intel-rapl:0:0", name="core", energy_uj=77, max_energy_range_uj=10**7)
    sensor = find_sensor(tmp_path)
    assert isinstance(sensor, Counter)
    assert sensor.joules() == 0
    (zones[0] / "energy_uj").write_text("9500000")
    assert sensor.joules() == pytest.approx(0.5)
    (zones[0] / "energy_uj").write_text("250000")
    (zones[1] / "energy_uj").write_text("9000001")
    assert sensor.joules() == pytest.approx(0.5 + 0.75 + 1e-6)


def test_rapl_that_may_not_be_read_is_unavailable(tmp_path: Path) -> None:
    zone = write(tmp_path, "powercap/intel-rapl:0", name="package-0", max_energy_range_uj=10**7)
    (zone / "energy_uj").mkdir()  # root reads every file, but no folder
    assert find_sensor(tmp_path) is None


def test_the_jetsons_total_rail_is_read(tmp_path: Path) -> None:
    monitor = jetson(tmp_path)
    sensor = find_sensor(tmp_path)
    assert isinstance(sensor, Gauge)
    assert sensor.name == "INA3221 (VDD_IN)"
    assert sensor.watts() == pytest.approx(6.0)
    (monitor / "in1_label").write_text("VDD_SOC\n")
    other = find_sensor(tmp_path)
    assert isinstance(other, Gauge)
    assert other.watts() == pytest.approx(8.0)  # no total: all rails


@pytest.mark.parametrize("current", [-500_000, 500_000, 500, -500])
def test_a_phones_current_in_any_unit_and_sign(tmp_path: Path, current: int) -> None:
    battery(tmp_path, current)
    sensor = find_sensor(tmp_path)
    assert isinstance(sensor, Gauge)
    assert sensor.watts() == pytest.approx(2.0)


def test_a_charging_phone_is_unavailable(tmp_path: Path) -> None:
    battery(tmp_path, 500_000, "Charging")
    assert find_sensor(tmp_path) is None


class Steady(Gauge):
    """So many watts."""

    name = "steady"

    def __init__(self, value: float) -> None:
        self.value = value

    def watts(self) -> float:
        return self.value


class Clockwork(Counter):
    """Three joules in a second."""

    name = "clockwork"

    def joules(self) -> float:
        return 3.0 * time.monotonic()


def test_the_meter_takes_idle_off() -> None:
    sensor = Steady(2.0)
    meter = Meter(sensor, 0.002)
    assert meter.calibrate(0.02) == pytest.approx(2.0)
    sensor.value = 7.0
    with meter.reading() as energy:
        time.sleep(0.02)
    assert energy.seconds >= 0.02
    assert energy.joules == pytest.approx(5.0 * energy.seconds)


def test_the_meter_reads_counters() -> None:
    with Meter(Clockwork(), 0.002).reading() as energy:
        time.sleep(0.02)
    assert energy.joules == pytest.approx(3.0 * energy.seconds, rel=0.05)
