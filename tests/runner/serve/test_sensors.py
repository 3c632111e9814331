"""What the server reads of a machine, from trees of files that stand for machines with sensors."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from compiled import compiled

ASKED = r"""
#include <cstdio>
#include "engine/sensors.h"
int main(int, char** words) {
    for (const auto& [name, value] : Sensors(words[1]).read()) std::printf("%s %.9g\n", name.c_str(), value);
}
"""
PHONE = {
    "proc/pressure/cpu": "some avg10=12.50 avg60=3.00 avg300=1.00 total=1\nfull avg10=0.00 avg60=0 avg300=0 total=0\n",
    "proc/pressure/memory": "some avg10=0.75 avg60=0.00 avg300=0.00 total=1\n",
    "proc/self/schedstat": "2500000000 500000000 77\n",
    "proc/self/cgroup": "0::/app/inner\n",
    "sys/fs/cgroup/cpu.max": "max 100000\n",
    "sys/fs/cgroup/app/cpu.max": "50000 100000\n",
    "sys/fs/cgroup/app/inner/cpu.max": "80000 100000\n",
    "sys/fs/cgroup/app/inner/cpu.stat": "usage_usec 5\nnr_periods 9\nnr_throttled 4\nthrottled_usec 1\n",
    "sys/class/thermal/thermal_zone0/temp": "41000\n",
    "sys/class/thermal/thermal_zone1/temp": "56500\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "1800000\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq": "2000000\n",
    "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "2000000\n",
    "sys/devices/system/cpu/cpu4/cpufreq/scaling_cur_freq": "600000\n",
    "sys/devices/system/cpu/cpu4/cpufreq/scaling_max_freq": "1500000\n",
    "sys/devices/system/cpu/cpu4/cpufreq/cpuinfo_max_freq": "3000000\n",
    "sys/class/power_supply/usb/type": "USB\n",
    "sys/class/power_supply/bat0/type": "Battery\n",
    "sys/class/power_supply/bat0/status": "Discharging\n",
    "sys/class/power_supply/bat0/capacity": "37\n",
}
SAID = {
    "cpu_pressure": 12.5,
    "memory_pressure": 0.75,
    "run_s": 2.5,
    "waited_s": 0.5,
    "throttled": 4,
    "temperature_c": 56.5,
    "clock_mhz": 600,
    "clock_limit": 0.5,
    "battery": 0.37,
    "quota": 0.5,
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("sensors"), ASKED)


def read(program: Path, root: Path, files: Mapping[str, str]) -> dict[str, float]:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    lines = subprocess.run([str(program), str(root)], capture_output=True, text=True, check=True).stdout.splitlines()
    return {name: float(value) for name, value in (line.split() for line in lines)}


def test_all_sensors_of_a_phone_are_read(program: Path, tmp_path: Path) -> None:
    assert read(program, tmp_path, PHONE) == pytest.approx(SAID)


def test_a_machine_that_tells_nothing_says_nothing(program: Path, tmp_path: Path) -> None:
    assert read(program, tmp_path, {}) == {}


@pytest.mark.parametrize("name", sorted(PHONE))
def test_nonsense_in_a_file_is_no_reading(program: Path, tmp_path: Path, name: str) -> None:
    others = {"quota", "clock_mhz", "clock_limit", "temperature_c"}  # of several files the others still say something
    found = read(program, tmp_path, {**PHONE, name: "nonsense\n"})
    assert found.keys() <= SAID.keys()
    assert all(SAID[key] == pytest.approx(value) for key, value in found.items() if key not in others)


def test_the_quota_of_control_groups_of_version_1_is_read(program: Path, tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "5:cpuset:/\n4:cpu,cpuacct:/group\n",
        "sys/fs/cgroup/cpu,cpuacct/group/cpu.cfs_quota_us": "25000\n",
        "sys/fs/cgroup/cpu,cpuacct/group/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/cpu,cpuacct/group/cpu.stat": "nr_periods 3\nnr_throttled 2\nthrottled_time 9\n",
    }
    assert read(program, tmp_path, files) == {"quota": 0.25, "throttled": 2}


def test_a_battery_at_a_charger_is_none(program: Path, tmp_path: Path) -> None:
    found = read(program, tmp_path, {**PHONE, "sys/class/power_supply/bat0/status": "Charging\n"})
    assert "battery" not in found
