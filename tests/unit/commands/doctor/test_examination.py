"""The examination of this machine, line by line, and of a device that another process uses."""

import os
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from autotailor.commands.doctor.examination import check_cores, check_frequency, check_temperature, examine, judge_noise
from autotailor.commands.doctor.finding import Finding, Verdict
from autotailor.profiling import DeviceConfig
from autotailor.profiling.host.lock import DeviceLock
from autotailor.profiling.host.machine import Machine, look
from autotailor.profiling.records.record import Record
from autotailor.profiling.transports.local import LocalTransport

HOST = DeviceConfig(name="host", cores=(0, 1))


def anchors(*blocks: tuple[float, ...]) -> list[Record]:
    return [Record("device", "anchor", values, values[0], 8, 0.5) for values in blocks]


@pytest.mark.parametrize(
    ("records", "verdict"),
    [
        (anchors((1.0, 1.01, 1.0, 1.01), (1.0, 1.01, 1.01, 1.0)), Verdict.GOOD),
        (anchors((1.0, 1.01, 1.0, 1.01), (1.05, 1.06, 1.06, 1.05)), Verdict.WARNING),
        (anchors((1.0, 1.5, 1.0, 0.7), (1.2, 1.0, 0.8, 1.1)), Verdict.FAILED),
        ([], Verdict.FAILED),
    ],
    ids=["steady", "drifting", "noisy", "nothing measured"],
)
def test_noise_is_judged(records: list[Record], verdict: Verdict) -> None:
    assert judge_noise(records).verdict is verdict


def examined_while_free() -> dict[str, Finding]:
    """What the doctor finds on this machine while no other test is measuring on it."""
    while True:
        with DeviceLock(LocalTransport(HOST).identity, "host"):
            pass
        found = {finding.check: finding for finding in examine(DeviceConfig.from_section({"name": "host"}))}
        if found["lock"].verdict is Verdict.GOOD:
            return found


def test_this_machine_is_examined_line_by_line() -> None:
    found = examined_while_free()
    for check in ("reachable", "authorised", "space", "lock", "runtime"):
        assert found[check].verdict is Verdict.GOOD, found[check]
    assert found["energy"].verdict in (Verdict.GOOD, Verdict.UNAVAILABLE)
    assert re.match(r"ncnn \d", found["runtime"].detail)
    assert re.match(r"anchor \d+\.\d+ ms, coefficient of variation \d", found["noise"].detail)
    assert all(f.remedy for f in found.values() if f.verdict is Verdict.FAILED)


def test_a_device_in_use_is_not_disturbed() -> None:
    transport = LocalTransport(HOST)
    with DeviceLock(transport.identity, "host"):
        found = {finding.check: finding for finding in in_another_process()}
    assert found["lock"].verdict is Verdict.WARNING
    assert f"process {os.getpid()} of" in found["lock"].detail
    assert found["noise"].verdict is Verdict.UNAVAILABLE


def in_another_process() -> list[Finding]:
    """What the doctor finds in a process of its own: a process holds its own lock twice."""
    code = (
        "from autotailor.commands.doctor.examination import examine\nfrom autotailor.profiling import DeviceConfig\n"
        "for f in examine(DeviceConfig.from_section({'name': 'host'})):\n"
        "    print(f.check, f.verdict.name, f.detail, sep='\\t')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    rows = (line.split("\t") for line in done.stdout.splitlines())
    return [Finding(check, Verdict[verdict], detail) for check, verdict, detail in rows]


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
