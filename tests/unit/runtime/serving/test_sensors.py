"""Sensors, against trees of files as kernels write them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from autotailor.runtime.serving.sensors import Reading, Sensors

PRESSURE = "some avg10={} avg60=1.00 avg300=0.50 total=123\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"


def tree(root: Path, files: dict[str, str]) -> Sensors:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Sensors(root / "proc", root / "sys")


PHONE = {
    "proc/pressure/cpu": PRESSURE.format("42.50"),
    "proc/pressure/memory": PRESSURE.format("0.00"),
    "proc/self/schedstat": "2000000000 500000000 77\n",
    "proc/self/cgroup": "0::/apps/mine\n",
    "sys/fs/cgroup/cpu.max": "max 100000\n",
    "sys/fs/cgroup/apps/cpu.max": "150000 100000\n",
    "sys/fs/cgroup/apps/mine/cpu.max": "max 100000\n",
    "sys/fs/cgroup/apps/mine/cpu.stat": "usage_usec 5\nnr_periods 9\nnr_throttled 4\nthrottled_usec 100\n",
    "sys/class/thermal/thermal_zone0/temp": "41000\n",
    "sys/class/thermal/thermal_zone1/temp": "63500\n",
    "sys/class/thermal/thermal_zone2/temp": "-274000\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "1800000\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq": "1800000\n",
    "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "1800000\n",
    "sys/devices/system/cpu/cpu4/cpufreq/scaling_cur_freq": "900000\n",
    "sys/devices/system/cpu/cpu4/cpufreq/scaling_max_freq": "1200000\n",
    "sys/devices/system/cpu/cpu4/cpufreq/cpuinfo_max_freq": "2400000\n",
    "sys/class/power_supply/usb/type": "USB\n",
    "sys/class/power_supply/battery/type": "Battery\n",
    "sys/class/power_supply/battery/status": "Discharging\n",
    "sys/class/power_supply/battery/capacity": "37\n",
}


def test_a_phone_is_read(tmp_path: Path) -> None:
    assert tree(tmp_path, PHONE).read() == Reading(
        cpu_pressure=42.5,
        memory_pressure=0.0,
        io_pressure=None,
        run_s=pytest.approx(2.0),
        waited_s=pytest.approx(0.5),
        throttled=4,
        temperature_c=pytest.approx(63.5),
        clock_mhz=pytest.approx(900.0),
        clock_limit=0.5,
        battery=0.37,
        quota=1.5,
    )


def test_where_nothing_can_be_read_nothing_is_said(tmp_path: Path) -> None:
    reading = tree(tmp_path, {}).read()
    assert reading == Reading()
    assert reading.known() == {}


def test_a_quota_of_cgroups_of_version_1_is_that_of_the_tightest_group(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "2:cpu,cpuacct:/box\n1:memory:/other\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us": "25000\n",
        "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/cpu,cpuacct/box/cpu.stat": "nr_periods 3\nnr_throttled 2\nthrottled_time 9\n",
    }
    reading = tree(tmp_path, files).read()
    assert (reading.quota, reading.throttled) == (0.25, 2)


def test_a_group_that_a_container_hides_is_the_root_that_it_shows(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/../../hidden\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}
    assert tree(tmp_path, files).read().quota == 0.5


@pytest.mark.parametrize("status", ["Charging", "Full", ""])
def test_a_battery_that_is_charged_does_not_count(tmp_path: Path, status: str) -> None:
    assert tree(tmp_path, PHONE | {"sys/class/power_supply/battery/status": status}).read().battery is None


@pytest.mark.parametrize("broken", ["", "nonsense\n", "some avg10=\n", "\0\0"])
def test_files_that_say_nonsense_say_nothing(tmp_path: Path, broken: str) -> None:
    assert tree(tmp_path, dict.fromkeys(PHONE, broken)).read() == Reading()


def test_this_machine_is_read() -> None:
    reading = Sensors().read()
    assert reading.quota > 0
    assert all(math.isfinite(value) for value in reading.known().values())
