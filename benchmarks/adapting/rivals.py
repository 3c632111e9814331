"""Controllers that choose a member for each inference of a recorded trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from autotailor.runtime.files import Member
from autotailor.runtime.forecast import Forecast
from autotailor.runtime.serving.chooser import Chooser
from autotailor.runtime.serving.sensors import Reading, Sensors
from autotailor.runtime.serving.settings import Settings
from autotailor.runtime.waits import Quota

RATIOS = 5
"""Inferences whose mean ratio AdaptiveNet's monitor reports; the paper does not say how many."""
CPU_WEIGHT = 1.0
"""AdaScale's weight of the processor; there is no GPU here, and the memory in use says nothing of latency."""


class Controller(Protocol):
    """Chooses; hears of each inference, and of the share of the core that others use."""

    def choose(self, target: int) -> int:
        """The member that is to run next."""

    def learn(self, member: int, wall_ms: float, cpu_ms: float, use: float) -> None:
        """Takes an inference into account."""

    def best_of(self, loaded: Iterable[int]) -> int | None:
        """What runs until the chosen member is loaded; None keeps what runs."""


class Fixed:
    """Always the same member."""

    def __init__(self, member: int) -> None:
        self.member = member

    def choose(self, target: int) -> int:
        return self.member

    def learn(self, member: int, wall_ms: float, cpu_ms: float, use: float) -> None:
        """There is nothing to learn."""

    def best_of(self, loaded: Iterable[int]) -> int | None:
        return None


@dataclass(frozen=True)
class Told(Sensors):
    """Sensors that read nothing but a quota, in cores."""

    told: Callable[[], Quota] = Quota

    def quota(self) -> Quota:
        return self.told()

    def read(self) -> Reading:
        return Reading(quota=self.told().cores)


class Ours:
    """The chooser of ``autotailor.runtime``, as the server runs it, with the trace's clock.

    Attributes:
        now: seconds of the trace; the replay sets it.
        last: the last inference: its member and its latency in milliseconds.
    """

    def __init__(
        self, members: Sequence[Member], settings: Settings, quota: Callable[[float], Quota] | None = None
    ) -> None:
        """Knows nothing of the load yet.

        Args:
            members: of the pool.
            settings: what is asked of it.
            quota: what the machine's files say of the quota at a second of the trace; None where they say nothing, so
                that the trace's load is to be found out.
        """
        self.now = 0.0
        self.members, self.last = members, (0, members[0].latency_ms)
        sensors = Told(told=lambda: quota(self.now) if quota else Quota())
        self.chooser = Chooser(members, settings, sensors, clock=lambda: self.now)
        self.deadline_ms = settings.policy.deadline_ms

    def choose(self, target: int) -> int:
        return self.chooser.choose(target, self.deadline_ms).member

    def learn(self, member: int, wall_ms: float, cpu_ms: float, use: float) -> None:
        self.last = (member, wall_ms)
        self.chooser.learn(member, wall_ms, cpu_ms)

    def best_of(self, loaded: Iterable[int]) -> int | None:
        return self.chooser.best_of(loaded, self.deadline_ms)


class Ratio:
    """AdaptiveNet, section 5.3: one ratio of actual to estimated latency; the best member within deadline / ratio."""

    def __init__(self, members: Sequence[Member], deadline_ms: float) -> None:
        self.latency = np.array([member.latency_ms for member in members])
        self.accuracy = np.array([member.accuracy for member in members])
        self.deadline_ms, self.last = deadline_ms, [1.0]

    def within(self, slowdown: float) -> int:
        """The most accurate member whose latency times ``slowdown`` is within the deadline, or the fastest."""
        fits = self.latency * slowdown <= self.deadline_ms
        return int(np.where(fits, self.accuracy, -np.inf).argmax()) if fits.any() else int(self.latency.argmin())

    def choose(self, target: int) -> int:
        return self.within(float(np.mean(self.last)))

    def learn(self, member: int, wall_ms: float, cpu_ms: float, use: float) -> None:
        self.last = [*self.last[1 - RATIOS :], wall_ms / self.latency[member]]

    def best_of(self, loaded: Iterable[int]) -> int | None:
        return None


class LoadIndex(Ratio):
    """AdaScale, section IV: a load index of what others use, forecast by an autoregressive model.

    The paper does not say how the index becomes latency. Here a core of which others use the share I leaves 1 - I, so
    that latency grows by 1 / (1 - I).
    """

    def __init__(self, members: Sequence[Member], deadline_ms: float) -> None:
        super().__init__(members, deadline_ms)
        self.forecast, self.use = Forecast(), 0.0

    def choose(self, target: int) -> int:
        index = self.use * self.forecast.factor()
        return self.within(1 / max(1 - min(index, 1.0), 0.05))

    def learn(self, member: int, wall_ms: float, cpu_ms: float, use: float) -> None:
        if use != self.use:  # a new look
            self.use = CPU_WEIGHT * use
            self.forecast = self.forecast.observed(self.use)
