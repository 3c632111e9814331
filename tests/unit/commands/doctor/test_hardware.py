"""Clocks, temperatures and cores, judged on copies of sysfs."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pytest

from autotailor.commands.doctor.finding import Verdict
from autotailor.commands.doctor.hardware import check_cores, check_frequency, check_temperature
from autotailor.profiling import DeviceConfig
from autotailor.profiling.host.machine import Machine, look
from autotailor.profiling.transports.local import LocalTransport

HOST = DeviceConfig(name="host", cores=(0, 1))


def board(root: Path, **files: object) -> PurePosixPath:
    """A copy of a board's sysfs: two small and two big cores, one temperature, a fan and a cooled processor."""
    values: dict[str, object] = {"devices/system/cpu/online": "0-3"}
    for core in range(4):
        folder, highest = f"devices/system/cpu/cpu{core}/cpufreq", 1_800_000 if core < 2 else 2_400_000
        values |= {f"{folder}/scaling_governor": "performance", f"{folder}/scaling_cur_freq": highest}
        values |= {f"{folder}/scaling_max_freq": highest, f"{folder}/cpuinfo_max_freq": highest}
    zone = "class/thermal/thermal_zone0"
    values |= {f"{zone}/type": "cpu-thermal", f"{zone}/temp": 45500}
    values |= {f"{zone}/trip_point_0_type": "passive", f"{zone}/trip_point_0_temp": 85000}
    values |= {"class/thermal/cooling_device0/type": "pwm-fan", "class/thermal/cooling_device0/cur_state": 3}
    values |= {"class/thermal/cooling_device1/type": "thermal-cpufreq-0", "class/thermal/cooling_device1/cur_state": 0}
    for path, value in (values | files).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"{value}\n")
    return PurePosixPath(root)


def state(root: Path, **files: object) -> Machine:
    """The state that the transport reads from it."""
    with LocalTransport(HOST) as transport:
        return look(transport, board(root, **files))


def test_a_cool_board_at_its_highest_clock_is_good(tmp_path: Path) -> None:
    machine = state(tmp_path)
    found = [check_cores(HOST, machine), check_frequency(HOST, machine), check_temperature(machine)]
    assert [f.verdict for f in found] == [Verdict.GOOD] * 3
    assert found[1].detail == "governor performance; 1800 of 1800 MHz"
    assert found[2].detail == "cpu-thermal 46 °C, throttles at 85"


@pytest.mark.parametrize(
    ("path", "value", "check", "verdict", "words"),
    [
        ("devices/system/cpu/online", "1-3", "cores", Verdict.FAILED, r"\[0\].*missing.*device.cores to \[1, 2, 3\]"),
        ("class/thermal/cooling_device1/cur_state", 2, "frequency", Verdict.FAILED, "thermal-cpufreq-0.*cool"),
        (
            "devices/system/cpu/cpu0/cpufreq/scaling_governor",
            "schedutil",
            "frequency",
            Verdict.WARNING,
            "fix the clock",
        ),
        ("devices/system/cpu/cpu1/cpufreq/scaling_max_freq", 900000, "frequency", Verdict.WARNING, "limited to 900"),
        ("class/thermal/thermal_zone0/temp", 80000, "temperature", Verdict.WARNING, "80 °C.*cool down"),
    ],
)
def test_what_stands_against_measuring_has_a_remedy(
    tmp_path: Path, path: str, value: object, check: str, verdict: Verdict, words: str
) -> None:
    machine = state(tmp_path, **{path: value})
    found = [check_cores(HOST, machine), check_frequency(HOST, machine), check_temperature(machine)]
    bad = [f for f in found if f.verdict is not Verdict.GOOD]
    assert [(f.check, f.verdict) for f in bad] == [(check, verdict)]
    assert re.search(words, f"{bad[0].detail}: {bad[0].remedy}")


def test_cores_of_two_clusters_are_warned_of(tmp_path: Path) -> None:
    found = check_cores(DeviceConfig(name="host", cores=(1, 2)), state(tmp_path))
    assert found.verdict is Verdict.WARNING
    assert "[1800, 2400] MHz" in found.detail


def test_a_machine_that_says_nothing_is_unavailable_not_failed(tmp_path: Path) -> None:
    with LocalTransport(HOST) as transport:
        machine = look(transport, PurePosixPath(tmp_path / "nothing"))
    found = [check_cores(HOST, machine), check_frequency(HOST, machine), check_temperature(machine)]
    assert {f.verdict for f in found} == {Verdict.UNAVAILABLE}


def test_throttling_between_two_looks_is_noticed(tmp_path: Path) -> None:
    path = "devices/system/cpu/cpu0/thermal_throttle/core_throttle_count"
    before, after = state(tmp_path, **{path: 4}), state(tmp_path, **{path: 7})
    assert before.throttled_since() == after.throttled_since() == ""
    assert after.throttled_since(before) == "throttled 3 times meanwhile"
