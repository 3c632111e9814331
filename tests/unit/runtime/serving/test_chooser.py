"""The chooser follows the quota that the machine's files say, before an inference has run under it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autotailor.runtime import Policy
from autotailor.runtime.files import Member
from autotailor.runtime.serving.chooser import QUOTA_S, Choice, Chooser
from autotailor.runtime.serving.sensors import Sensors
from autotailor.runtime.serving.settings import Settings

PERIOD_MS = 20.0
MEMBERS = [
    Member(f"m{i}", 70.0 + 10 * i, (ms, 0.0, 0.0), 1, math.nan, "in0", (3, 8, 8), "out0", 4, "0" * 64, "0" * 64)
    for i, ms in enumerate((3.0, 12.0, 40.0))
]


class Machine:
    """A control group's files, and a clock."""

    def __init__(self, root: Path) -> None:
        self.now, self.root = 0.0, root
        for name, text in {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "max 20000"}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(f"{text}\n", encoding="utf-8")
        self.sensors = Sensors(root / "proc", root / "sys")

    def limit(self, share: float) -> None:
        """Writes another quota, which is looked at soon."""
        text = f"{round(1e3 * share * PERIOD_MS)} {round(1e3 * PERIOD_MS)}\n"
        (self.root / "sys/fs/cgroup/cpu.max").write_text(text, encoding="utf-8")
        self.now += 1.01 * QUOTA_S


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def chooser_of(machine: Machine, threads: int = 1, **policy: float) -> Chooser:
    settings = Settings(Policy(70.0, quantile=0.9, dwell_s=0.0, **policy))  # type: ignore[arg-type]
    return Chooser(MEMBERS, settings, machine.sensors, lambda: machine.now, threads)


def run(machine: Machine, chooser: Chooser, member: int, share: float, count: int = 20) -> None:
    """Inferences of a member without a pause, under a quota."""
    cpu = MEMBERS[member].latency_ms
    ends = np.cumsum(np.full(count, cpu)) + 0.37
    for stops in np.diff(np.concatenate(([0.0], np.floor(ends / (share * PERIOD_MS))))):
        wall = cpu + float(stops) * (1 - share) * PERIOD_MS
        machine.now += wall / 1e3
        chooser.learn(member, wall, cpu)


def test_a_quota_that_falls_is_followed_before_an_inference_is_late(machine: Machine) -> None:
    chooser = chooser_of(machine)
    machine.limit(0.8)
    machine.now += 1.0  # where there was no quota, the next look is a second away
    assert chooser.choose(2, 70.0).member == 2
    run(machine, chooser, 2, 0.8)
    assert chooser.choose(2, 70.0).member == 2
    machine.limit(0.4)  # 40 ms of CPU time take 100 ms
    assert chooser.choose(2, 70.0) == Choice(1, "down")
    machine.limit(0.8)
    assert chooser.choose(1, 70.0).member == 2
    machine.limit(2.0)
    assert chooser.choose(2, 70.0).member == 2
    assert chooser.monitor.waits.share == 0.0


def test_threads_share_a_quota(machine: Machine) -> None:
    chooser = chooser_of(machine, threads=2)
    machine.limit(1.6)
    machine.now += 1.0
    chooser.choose(2, 70.0)
    run(machine, chooser, 2, 0.8)
    machine.limit(0.8)
    assert chooser.choose(2, 70.0).member == 1
    assert chooser.monitor.waits.share == pytest.approx(1 / 0.4 - 1)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("is_read", [True, False])
def test_the_threads_of_all_requests_together_keep_within_a_quota(
    machine: Machine, threads: int, is_read: bool
) -> None:
    for share, member in ((0.75, 1), (0.85, 2)):  # 20 times 40 ms in a second are 0.8 cores for each thread
        machine.limit(share * threads if is_read else 64.0)
        asked = {} if is_read else {"quota": share * threads}
        assert chooser_of(machine, threads, rate=20.0, **asked).choose(2, 70.0).member == member


@pytest.mark.parametrize(
    ("policy", "quota", "member"),
    [({}, 64.0, 2), ({"rate": 20.0}, 64.0, 2), ({"rate": 30.0}, 64.0, 0), ({"rate": 20.0}, 0.7, 0)],
    ids=["deadline", "a rate that fits", "rate", "quota"],
)
def test_what_runs_until_a_member_is_prepared_fits_in_the_same_three_ways(
    machine: Machine, policy: dict[str, float], quota: float, member: int
) -> None:
    machine.limit(quota)
    assert chooser_of(machine, **policy).best_of([0, 2], 70.0) == member


def test_what_runs_until_a_member_is_prepared_spares_the_battery(machine: Machine) -> None:
    members = [replace(each, energy_mj=each.latency_ms) for each in MEMBERS]
    for level, member in ((1.0, 2), (0.0, 0)):
        settings = Settings(Policy(70.0, quantile=0.9), battery=level)
        assert Chooser(members, settings, machine.sensors, lambda: machine.now).best_of([0, 2], 70.0) == member


def test_a_process_that_pauses_is_not_slowed_down_by_a_smaller_quota(machine: Machine) -> None:
    chooser = chooser_of(machine)
    machine.limit(0.8)
    machine.now += 1.0
    chooser.choose(2, 70.0)
    for _ in range(20):
        machine.now += 1.0
        chooser.learn(2, 40.0, 40.0)
    machine.limit(0.4)
    assert chooser.choose(2, 70.0).member == 2
