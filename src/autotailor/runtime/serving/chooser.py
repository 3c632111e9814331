"""The chooser: monitor, load model, forecast and choice of one pool, fed with the inferences as they come.

It knows members by their number in the pool, from the one with the least latency. It runs nothing itself, so that a
recorded trace can be replayed through it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from autotailor.runtime.controller import Policy, best_of, decide, scores
from autotailor.runtime.files import Member
from autotailor.runtime.monitor import SURPRISE, Monitor
from autotailor.runtime.serving.pace import Pace
from autotailor.runtime.serving.sensors import Reading, Sensors
from autotailor.runtime.serving.settings import Settings
from autotailor.runtime.table import CLASSES, Table

LOOK_S = 1.0
"""Seconds between two looks at battery and quota."""
QUOTA_S = 0.1
"""Seconds between two looks at a quota, where there is one: it may change, and then all latencies do."""


@dataclass(frozen=True)
class Choice:
    """The member that is to run next, and why, see ``controller.Decision``."""

    member: int
    event: str


class Chooser:
    """Learns from inferences, and chooses.

    Attributes:
        settings: what is asked of the pool; may be replaced at any time.
        monitor: what is known of the load.
        pace: how often the monitor may learn.
    """

    def __init__(
        self,
        members: Sequence[Member],
        settings: Settings,
        sensors: Sensors | None = None,
        clock: Callable[[], float] = time.perf_counter,
        threads: int = 1,
    ) -> None:
        """Knows nothing of the load yet.

        Args:
            members: of the pool.
            settings: what is asked of it.
            sensors: of the machine.
            clock: seconds that do not go back.
            threads: that compute an inference, and share a quota.
        """
        self._threads = threads
        self._members, self._sensors, self._clock = members, sensors or Sensors(), clock
        self.settings, self.monitor, self.pace = settings, Monitor(), Pace()
        self._looked = self._looked_at_quota = clock()
        self._reading, self._quota = self._sensors.read(), self._sensors.quota()
        self._switched = -math.inf
        self._expectations: dict[int, float] = {}
        self._use_all_but(())

    def first(self) -> int:
        """The member that runs first: the best that fits without load, or the pinned one."""
        if self.settings.pin is not None:
            return self._pinned(self.settings.pin)
        return self.choose(self._numbers[self._table.fastest], self.settings.policy.deadline_ms).member

    def learn(self, member: int, wall_ms: float, cpu_ms: float) -> bool:
        """Takes an inference into account.

        Returns:
            whether the monitor has learnt from it, so that another choice may be better now.
        """
        row = self._rows.get(member)
        if row is None:  # the member has broken meanwhile
            return False
        expected = self._expected(row)
        if not self.pace.allows(self._clock(), abs(math.log(wall_ms / expected)) > SURPRISE):
            self.monitor = self.monitor.noted(cpu_ms / expected, wall_ms, cpu_ms)
            return False
        with self.pace.spending():
            self.monitor = self.monitor.observed(self._table.split_ms[row], wall_ms, cpu_ms)
        self._expectations = {}
        return True

    def choose(self, target: int, deadline_ms: float) -> Choice:
        """The member that is to run next.

        Args:
            target: the member that runs, or is being prepared.
            deadline_ms: of the next inference.
        """
        if self.settings.pin is not None:
            return Choice(self._pinned(self.settings.pin), "pinned")
        now = self._clock()
        with self.pace.spending():
            active = self._rows.get(target, self._table.fastest)
            policy, since = self._policy(deadline_ms), now - self._switched
            decision = decide(self._table, self.monitor, policy, active, since, self._battery())
        chosen = self._numbers[decision.row]
        if chosen != target:
            self._switched = now
        return Choice(chosen, decision.event)

    def best_of(self, numbers: Iterable[int], deadline_ms: float) -> int:
        """Of some members the best one that fits, or the fastest where none fits."""
        rows = [self._rows[number] for number in numbers if number in self._rows]
        return self._numbers[best_of(rows, self._table, self.monitor, self._policy(deadline_ms), self._battery())]

    def leave_out(self, broken: Iterable[int]) -> list[int]:
        """Chooses from the other members from now on; returns those of ``broken`` that were still chosen from."""
        new = sorted(set(broken) & set(self._numbers))
        if new:
            self._use_all_but(broken)
        if self.settings.pin is not None and self._pinned(self.settings.pin) in new:
            self.settings = replace(self.settings, pin=None)
        return new

    def check(self, settings: Settings) -> None:
        """Raises ``PoolError`` where settings name a battery, and the energy of a member is unknown."""
        scores(self._table, settings.battery)

    def load(self) -> dict[str, float]:
        """What is known of the load."""
        load = self.monitor.load
        slowdown = dict(zip(CLASSES, load.slowdown.tolist(), strict=True))
        return {
            **{f"slowdown_{name}": value for name, value in slowdown.items()},
            "slowdown": load.ratio,
            "waiting": self.monitor.waits.share,
            "forecast": self.monitor.forecast.factor(),
            "quantile": self.monitor.quantile(self.settings.policy.quantile),
        }

    def look(self) -> Reading:
        """What the machine says, not older than ``LOOK_S``."""
        now = self._clock()
        if now - self._looked >= LOOK_S:
            self._looked, self._reading = now, self._sensors.read()
            self._look_at_quota(now)
        elif self._quota.cores < math.inf and now - self._looked_at_quota >= QUOTA_S:
            self._look_at_quota(now)
        return self._reading

    def _look_at_quota(self, now: float) -> None:
        """What has waited under another quota is known to wait otherwise now."""
        before, self._quota, self._looked_at_quota = self._quota, self._sensors.quota(), now
        if before != self._quota:
            self._reading = replace(self._reading, quota=self._quota.cores)
            waits = self.monitor.waits.under_quota(before.of_each(self._threads), self._quota.of_each(self._threads))
            self.monitor = replace(self.monitor, waits=waits)

    def _expected(self, row: int) -> float:
        """Predicted CPU time of a row, remembered until the monitor learns again."""
        if row not in self._expectations:
            self._expectations[row] = float(self.monitor.cpu_ms(self._table.split_ms[row][None])[0])
        return self._expectations[row]

    def _policy(self, deadline_ms: float) -> Policy:
        """The policy with a deadline, and with each thread's part of the quota (the machine's, if none is set)."""
        policy = self.settings.policy
        quota = (self.look().quota if math.isinf(policy.quota) else policy.quota) / self._threads
        if (deadline_ms, quota) == (policy.deadline_ms, policy.quota):
            return policy
        return replace(policy, deadline_ms=deadline_ms, quota=quota)

    def _battery(self) -> float | None:
        if self.settings.battery is not None:
            return self.settings.battery
        return self.look().battery if self._knows_energy else None

    def _pinned(self, name: str) -> int:
        return next(number for number, member in enumerate(self._members) if member.name == name)

    def _use_all_but(self, broken: Iterable[int]) -> None:
        """The table of the members that can be chosen; its rows and the members' numbers, both ways."""
        left_out = set(broken)
        numbers = {each.name: number for number, each in enumerate(self._members) if number not in left_out}
        self._table = Table.of([self._members[number].entry for number in numbers.values()])
        self._numbers = [numbers[entry.subnet] for entry in self._table.entries]
        self._rows = {number: row for row, number in enumerate(self._numbers)}
        self._expectations = {}
        self._knows_energy = not np.isnan(self._table.energy_mj).any()
