"""Loads that a benchmark makes: what competes with the pool at each moment, known in advance.

A load is a list of steps. A step says from which second on how many co-runners compete on the pool's core, how many
processes copy memory on the other cores, and which share of the core's time the pool may use.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from autotailor.serving import Quota
from autotailor.serving.demo.drive import Burdens

PERIOD_US = 20_000
STOPPER = """
import os, signal, sys, time
pid, share, period = int(sys.argv[1]), float(sys.argv[2]), 0.02
try:
    while os.getppid() == pid:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(period * (1 - share))
        os.kill(pid, signal.SIGCONT)
        time.sleep(period * share)
finally:
    os.kill(pid, signal.SIGCONT)
"""


@dataclass(frozen=True)
class Step:
    """What competes from a second on."""

    seconds: float
    corunners: int = 0
    hogs: int = 0
    quota: float = 1.0


def corunners(seconds: float) -> list[Step]:
    """0, 1, 3 and again 0 co-runners on the pool's core."""
    return [Step(part * seconds / 4, corunners=count) for part, count in enumerate((0, 1, 3, 0))]


def sawtooth(seconds: float) -> list[Step]:
    """A share of CPU time that falls from all to 30 % in steps, twice."""
    shares = [1.0, 0.85, 0.7, 0.55, 0.4, 0.3] * 2
    return [Step(part * seconds / len(shares), quota=share) for part, share in enumerate(shares)]


def bandwidth(seconds: float) -> list[Step]:
    """Nothing, a process that copies memory on another core, nothing, two of them."""
    return [Step(part * seconds / 4, hogs=count) for part, count in enumerate((0, 1, 0, 2))]


def bursts(seconds: float, seed: int = 0) -> list[Step]:
    """Co-runners that come and go at random: 0 for about a second, then one to three for about half of one."""
    rng = np.random.default_rng(seed)
    steps, now, busy = [Step(0.0)], float(rng.exponential(1.0)), True
    while now < seconds:
        steps.append(Step(now, corunners=int(rng.integers(1, 4)) if busy else 0))
        now += max(0.1, float(rng.exponential(0.5 if busy else 1.0)))
        busy = not busy
    return steps


LOADS: dict[str, Callable[[float], list[Step]]] = {
    "co-runners": corunners,
    "quota": sawtooth,
    "bandwidth": bandwidth,
    "bursts": bursts,
}


def quota_of(steps: Sequence[Step], number: int) -> Quota:
    """What a control group's files say in a step of a load."""
    share = steps[number].quota
    return Quota(share, PERIOD_US / 1000) if share < 1 else Quota()


class Loader:
    """Applies steps to this process; a context manager that undoes everything.

    Attributes:
        how: by which means a quota is held.
    """

    def __init__(self, seconds: float, core: int) -> None:
        self._corunners = Burdens(seconds)
        self._hogs = Burdens(seconds, "memory")
        self._others = os.sched_getaffinity(os.getppid()) - {core} or {core}
        self._core = core
        self._stopper: subprocess.Popen[bytes] | None = None
        self._group = _group()
        self.how = "cgroup" if self._group else "SIGSTOP"
        self._now = Step(0.0)

    def __enter__(self) -> Loader:
        if self._group:
            (self._group / "tasks").write_text(str(os.getpid()))
        return self

    def __exit__(self, *_: object) -> None:
        self._corunners.set(0)
        self._hogs.set(0)
        self._limit(1.0)
        if self._group:
            (self._group.parent / "tasks").write_text(str(os.getpid()))
            with suppress(OSError):
                self._group.rmdir()

    def apply(self, step: Step) -> None:
        """Makes a step hold; does nothing where it holds already."""
        if step.corunners != self._now.corunners:
            self._corunners.set(step.corunners)
        if step.hogs != self._now.hogs:
            os.sched_setaffinity(0, self._others)  # a hog inherits it
            self._hogs.set(step.hogs)
            os.sched_setaffinity(0, {self._core})
        if step.quota != self._now.quota:
            self._limit(step.quota)
        self._now = step

    def _limit(self, share: float) -> None:
        if self._group:
            quota = -1 if share >= 1 else round(share * PERIOD_US)
            (self._group / "cpu.cfs_quota_us").write_text(str(quota))
            return
        if self._stopper:
            self._stopper.send_signal(signal.SIGINT)
            self._stopper.wait()
            self._stopper = None
        if share < 1:
            self._stopper = subprocess.Popen([sys.executable, "-I", "-S", "-c", STOPPER, str(os.getpid()), str(share)])


def _group() -> Path | None:
    """A new cgroup of version 1 for this process; None where there is none to be had."""
    root = Path("/sys/fs/cgroup/cpu")
    group = root / f"autotailor-{os.getpid()}"
    try:
        if not (root / "cpu.cfs_quota_us").exists() and not (root / "cpu.cfs_period_us").exists():
            return None
        group.mkdir()
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
    except OSError:
        return None
    return group
