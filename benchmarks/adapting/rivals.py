"""Controllers that choose a member for each inference of a recorded trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np

from autotailor.serving import Quota, Replay
from autotailor.serving.files import Member

RATIOS = 5
"""Inferences whose mean ratio AdaptiveNet's monitor reports; the paper does not say how many."""
CPU_WEIGHT = 1.0
"""AdaScale's weight of the processor; there is no GPU here, and the memory in use says nothing of latency."""

STEP_MS = 0.02
"""What a step of our monitor takes, or one choice, at most (``live.decision_us``)."""
ORDER, WINDOW = 2, 48
"""Of AdaScale's autoregressive model, and values that it is fitted to."""
FARTHEST = 4.0
"""AdaScale's forecast stays within this factor of the present value; guards an unstable fit."""


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


class Ours:
    """The choice of ``libautotailor.so``, as the server makes it, with the trace's clock.

    Attributes:
        now: seconds of the trace; the replay sets it.
        last: the last inference: its member and its latency in milliseconds.
    """

    def __init__(
        self,
        members: Sequence[Member],
        deadline_ms: float,
        quantile: float = 0.95,
        quota: Callable[[float], Quota] | None = None,
        step_ms: float = STEP_MS,
    ) -> None:
        """Knows nothing of the load yet.

        Args:
            members: of the pool.
            deadline_ms: of an inference.
            quantile: probability with which it is to be met.
            quota: what the machine's files say of the quota at a second of the trace; None where they say nothing, so
                that the trace's load is to be found out.
            step_ms: what a step of the monitor is taken to cost.
        """
        self.now, self.quota = 0.0, quota
        self.members, self.last = members, (0, members[0].latency_ms)
        self.replay = Replay(members, step_ms=step_ms, deadline_ms=deadline_ms, quantile=quantile)

    def choose(self, target: int) -> int:
        self.replay.at(self.now, self.quota(self.now) if self.quota else None)
        return self.replay.choose(target).member

    def learn(self, member: int, wall_ms: float, cpu_ms: float, use: float) -> None:
        self.last = (member, wall_ms)
        self.replay.ran(member, wall_ms, cpu_ms)

    def best_of(self, loaded: Iterable[int]) -> int | None:
        return self.replay.best_of(loaded)


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
        self.uses, self.use = [0.0], 0.0

    def choose(self, target: int) -> int:
        index = self.forecast()
        return self.within(1 / max(1 - min(index, 1.0), 0.05))

    def learn(self, member: int, wall_ms: float, cpu_ms: float, use: float) -> None:
        if use != self.use:  # a new look
            self.use = CPU_WEIGHT * use
            self.uses = [*self.uses[1 - WINDOW :], self.use]

    def forecast(self) -> float:
        """The next value of the index by an autoregressive model of order 2, fitted by least squares."""
        if len(self.uses) < 4 * ORDER:
            return self.use
        rows = np.lib.stride_tricks.sliding_window_view(np.array(self.uses), ORDER + 1)
        design = np.column_stack([np.ones(len(rows)), rows[:, :ORDER]])
        constant, *weights = np.linalg.lstsq(design, rows[:, ORDER], rcond=None)[0]
        said = constant + float(np.dot(weights, self.uses[-ORDER:]))
        return float(np.clip(said, self.use / FARTHEST, self.use * FARTHEST))
