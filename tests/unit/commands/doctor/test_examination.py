"""The examination of this machine, line by line, and of a device that another process uses."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from autotailor.commands.doctor.examination import examine, judge_noise
from autotailor.commands.doctor.finding import Finding, Verdict
from autotailor.profiling import DeviceConfig
from autotailor.profiling.host.lock import DeviceLock
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
