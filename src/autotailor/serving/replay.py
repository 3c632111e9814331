"""Replays: what a pool would run under recorded latencies, as ``libautotailor.so`` chooses, without its networks.

    replay = Replay(pool.index.members, deadline_ms=5.0)
    replay.at(0.02)
    target = replay.choose(target).member
    replay.ran(target, wall_ms, cpu_ms)

Time and quota are those of the recording, so that a replay gives the same choices each time.
"""

import ctypes
import json
import math
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.serving import library
from autotailor.serving.files import Member
from autotailor.serving.wire.bodies import settings_body


@dataclass(frozen=True)
class Quota:
    """How much CPU time a process may have (cgroup): when a period's budget is used up, it waits for the next period.

    Attributes:
        cores: CPU time of a period over its length; infinite without a quota.
        period_ms: length of a period.
    """

    cores: float = math.inf
    period_ms: float = 100.0


@dataclass(frozen=True)
class Choice:
    """The member that is to run next.

    Attributes:
        member: its number.
        event: ``stay``, ``down`` (the target no longer fits), ``up`` (a better one fits), ``nothing fits`` or
            ``pinned``.
        latency_ms: that the member does not exceed with the probability of the settings; NaN where it is pinned.
    """

    member: int
    event: str
    latency_ms: float


class Replay:
    """Monitor and choice of one pool, with the time of a recording."""

    def __init__(
        self, members: Sequence[Member], threads: int = 1, step_ms: float = 0.0, **settings: float | str | None
    ) -> None:
        """Knows nothing of the load yet.

        Args:
            members: of the pool.
            threads: that compute an inference, and share a quota.
            step_ms: what a step of the monitor is taken to cost: it learns only as often as its share of time allows.
            settings: as those of ``Service.of``; to ``pin``, members are named ``"0"``, ``"1"`` and so on.

        Raises:
            PoolError: the library was not built, there is no member, or a number makes no sense.
        """
        costs = [library.Cost(each.accuracy, *each.split_ms, each.energy_mj) for each in members]
        table = (library.Cost * len(costs))(*costs)
        self._count = len(costs)
        self._handle = library.made("replay_open", table, len(costs), threads, step_ms, settings_body(settings))
        weakref.finalize(self, library.function("replay_close"), self._handle)

    def set(self, **settings: float | str | None) -> None:
        """Changes settings; raises PoolError where one makes no sense, and nothing has changed then."""
        library.call("replay_set", self._handle, settings_body(settings))

    def at(self, seconds: float, quota: Quota | None = None) -> None:
        """The time goes on.

        Args:
            seconds: since the beginning; they do not go back.
            quota: what the machine's files say now; None where there is no quota.
        """
        quota = quota or Quota()
        library.call("replay_at", self._handle, 1e3 * seconds, quota.cores, quota.period_ms)

    def ran(self, member: int, wall_ms: float, cpu_ms: float) -> None:
        """An inference has taken so long."""
        library.call("replay_ran", self._handle, member, wall_ms, cpu_ms)

    def choose(self, target: int, deadline_ms: float = 0.0) -> Choice:
        """The member that is to run next.

        Args:
            target: the member that runs, or is being prepared.
            deadline_ms: of the next inference; 0 takes that of the settings.
        """
        chosen = library.Chosen()
        library.call("replay_choose", self._handle, target, deadline_ms, chosen)
        return Choice(chosen.member, chosen.event.decode(), chosen.latency_ms)

    def best_of(self, members: Iterable[int]) -> int:
        """Of some members the best that fits as of the last choice; the fastest where none fits."""
        numbers, best = list(members), ctypes.c_uint32()
        listed = (ctypes.c_uint32 * len(numbers))(*numbers)
        library.call("replay_best", self._handle, listed, len(numbers), best)
        return best.value

    def bounds_ms(self, quantile: float) -> npt.NDArray[np.float64]:
        """Latencies ``[n]`` that the members do not exceed with a probability now."""
        bounds = (ctypes.c_double * self._count)()
        library.call("replay_bounds", self._handle, quantile, bounds, self._count)
        return np.array(bounds, dtype=np.float64)

    def status(self) -> dict[str, Any]:
        """``settings``, ``load`` and ``monitor_cpu_seconds``, as a server's status has them."""
        return dict(json.loads(library.text("replay_status", self._handle)))
