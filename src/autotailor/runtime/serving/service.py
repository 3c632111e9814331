"""The service: a pool that runs, within a process or behind a socket.

    with Service.of("results/resnet_digits/host/pool", deadline_ms=5.0) as service:
        reply = service.infer(Request(picture))

After each inference the chooser learns from its wall and CPU time, and says which member is to run next. A request with
another deadline than the one before is decided upon before it runs.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from autotailor.runtime.controller import Policy
from autotailor.runtime.errors import PoolError
from autotailor.runtime.files import OpenPool, check_successor, open_pool
from autotailor.runtime.serving.chooser import Chooser
from autotailor.runtime.serving.cores import usable
from autotailor.runtime.serving.counters import Counters, prometheus
from autotailor.runtime.serving.engine import Engine
from autotailor.runtime.serving.sensors import Sensors
from autotailor.runtime.serving.settings import Settings
from autotailor.runtime.wire.bodies import Flag, Reply, Request, most_request_bytes

logger = logging.getLogger(__name__)

SLACK = 1.25
"""The deadline where none is given, as a multiple of the largest member's latency without load."""
WAIT_S = 60.0
"""Seconds that a restart waits for a member."""
LONG_S = 60.0
"""Seconds without a member that fits, after which the pool asks for a new search."""


class Service:
    """A running pool; a context manager. One thread at a time may call it.

    Attributes:
        engine: runs the members.
        chooser: what is known of the load, and the settings.
        counters: what has happened.
        names, accuracies: of the members, in the order of the pool; accuracies in percent.
    """

    def __init__(
        self,
        pool: OpenPool,
        settings: Settings,
        sensors: Sensors | None = None,
        clock: Callable[[], float] = time.perf_counter,
        preparing: Collection[int] = (),
    ) -> None:
        """Loads the smallest member, and the best one that meets the deadline without load.

        Args:
            pool: an opened pool.
            settings: what is asked of it.
            sensors: of the machine.
            clock: seconds that do not go back.
            preparing: cores of the thread that prepares members; empty for those of the calling thread.

        Raises:
            PoolError: a member cannot be loaded.
        """
        self._pool, self._sensors, self._clock = pool, sensors or Sensors(), clock
        self._members = pool.index.members
        self.names = tuple(member.name for member in self._members)
        self.accuracies = tuple(member.accuracy for member in self._members)
        self.chooser = self._new_chooser(settings)
        self.counters = Counters([0] * len(self._members))
        self._preparing = preparing
        self.engine = Engine(pool, self.chooser.first(), preparing=preparing)
        self._began, self._ran = clock(), self.engine.active
        self._without_fit: float | None = None
        self._complained = -math.inf
        self._decided_for = settings.policy.deadline_ms

    @classmethod
    def of(
        cls,
        folder: str | Path,
        deadline_ms: float | None = None,
        sensors: Sensors | None = None,
        preparing: Collection[int] = (),
        **policy: float,
    ) -> Service:
        """A service of a folder's pool.

        Args:
            folder: of the pool.
            deadline_ms: of one inference; None takes ``SLACK`` times the largest member's latency.
            sensors: of the machine.
            preparing: cores of the thread that prepares members; empty for those of the calling thread.
            policy: further attributes of ``Policy``.

        Raises:
            PoolError: the pool cannot be read, or the policy cannot be met.
        """
        pool = open_pool(folder)
        if deadline_ms is None:
            deadline_ms = SLACK * max(member.latency_ms for member in pool.index.members)
        settings = Settings(Policy(deadline_ms, **policy))  # type: ignore[arg-type]
        return cls(pool, settings, sensors, preparing=preparing)

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the thread that prepares members; safe to call twice."""
        self.engine.close()

    def successor(self) -> Callable[[], Service]:
        """Opens the pool that the folder holds now.

        Settings stay, but for the pin: its name may be another SubNet's by now. What has been learnt of the load does
        not depend on members, and is taken over, too.

        Returns:
            What gives the service that takes this one's place, to be called between two requests.

        Raises:
            PoolError: the folder holds no whole pool, or one of another model or device, or with other inputs.
        """
        pool = open_pool(self._pool.folder)
        check_successor(self._pool.index, pool.index)
        made = Service(pool, replace(self.chooser.settings, pin=None), self._sensors, self._clock, self._preparing)

        def take_over() -> Service:
            settings = replace(self.chooser.settings, pin=None)  # a client may have changed them meanwhile
            try:
                made.chooser.check(settings)
            except PoolError:
                made.close()
                raise
            made.chooser.settings, made.chooser.monitor = settings, self.chooser.monitor
            made._choose(settings.policy.deadline_ms)
            return made

        return take_over

    @property
    def most_bytes(self) -> int:
        """Bytes that the body of a request may have."""
        return most_request_bytes(self.largest_input)

    @property
    def largest_input(self) -> tuple[int, int, int]:
        """Shape of the largest input that a member has."""
        return self._pool.index.largest_input

    def infer(self, request: Request) -> Reply:
        """Runs the active member on a picture.

        Raises:
            PoolError: the picture does not fit, or ncnn fails.
        """
        deadline = request.deadline_ms or self.chooser.settings.policy.deadline_ms
        try:
            if self.engine.broken:
                self._leave_out_broken()
            if deadline != self._decided_for:
                self._choose(deadline)
            self.engine.take()
            member = self.engine.active
            ran = self.engine.run(request.picture)
        except PoolError:
            self.counters.errors += 1
            raise
        is_late = self.counters.ran(member, self._members[member].accuracy, ran.wall_ms, ran.cpu_ms, deadline)
        flags = Flag.LATE if is_late else Flag(0)
        if member != self._ran:
            self.counters.switches += 1
            self._ran = member
            flags |= Flag.SWITCHED
        if self.chooser.learn(member, ran.wall_ms, ran.cpu_ms):
            self._choose(deadline)
        if self._without_fit is not None:
            flags |= Flag.NOTHING_FITS
        return Reply(member, flags, ran.wall_ms, ran.cpu_ms, ran.outputs)

    def restart(self) -> None:
        """Forgets the load, the counts and the last switch, as if the pool had just been opened."""
        self.chooser = self._new_chooser(self.chooser.settings)
        self.chooser.leave_out(self.engine.broken)
        self.counters = Counters([0] * len(self._members))
        self._began, self._without_fit = self._clock(), None
        self.engine.aim(self.chooser.first(), lambda loaded: min(loaded))
        self.engine.wait(WAIT_S)
        self.engine.take()
        self._ran = self.engine.active

    def status(self) -> dict[str, Any]:
        """What runs, as a JSON object."""
        return {
            "model": self._pool.index.model,
            "device": self._pool.index.device,
            "members": [
                {"name": member.name, "accuracy": member.accuracy, "latency_ms": member.latency_ms}
                for member in self._members
            ],
            "active": self.names[self.engine.active],
            "target": self.names[self.engine.target],
            "loaded": [self.names[number] for number in self.engine.loaded],
            "broken": {self.names[number]: why for number, why in self.engine.broken.items()},
            "seconds": self._clock() - self._began,
            "cores": sorted(usable()),
            "settings": self.chooser.settings.to_dict(),
            "load": self.chooser.load(),
            "machine": self._sensors.read().known(),
            "monitor_cpu_seconds": self.chooser.pace.spent_s,
            "wants_search": self._wants_search(),
            "counters": self.counters.to_dict(self.names),
        }

    def metrics(self) -> str:
        """The counters and what is known of the load, in Prometheus' text format."""
        gauges = {
            **{f"load_{name}": value for name, value in self.chooser.load().items()},
            **{f"machine_{name}": value for name, value in self._sensors.read().known().items()},
            "deadline_ms": self.chooser.settings.policy.deadline_ms,
            "monitor_cpu_seconds": self.chooser.pace.spent_s,
            "members_loaded": len(self.engine.loaded),
            "wants_search": float(self._wants_search()),
        }
        return prometheus(self.counters, self.names, self.names[self.engine.active], gauges)

    def set(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Changes settings, see ``Settings.changed``; returns all of them.

        Raises:
            PoolError: a key or value is invalid, or a battery is given and energies are unknown.
        """
        usable = [name for number, name in enumerate(self.names) if number not in self.engine.broken]
        settings = self.chooser.settings.changed(content, usable)
        self.chooser.check(settings)
        self.chooser.settings = settings
        self._choose(settings.policy.deadline_ms)
        return settings.to_dict()

    def _new_chooser(self, settings: Settings) -> Chooser:
        """What knows nothing of the load yet."""
        return Chooser(self._members, settings, self._sensors, self._clock, self._pool.index.threads)

    def _choose(self, deadline_ms: float) -> None:
        """Decides which member is to run next, and tells the engine."""
        before, self._decided_for = self.engine.target, deadline_ms
        choice = self.chooser.choose(before, deadline_ms)
        if choice.event != "nothing fits":
            self._without_fit = None
        elif self._without_fit is None:
            self._without_fit = self._clock()
            self.counters.nothing_fits += 1
            self._event(choice.event, before, choice.member)
            self._complain(deadline_ms)
        if choice.member != before:
            if choice.event != "nothing fits":
                self._event(choice.event, before, choice.member)
            self.engine.aim(choice.member, lambda loaded: self.chooser.best_of(loaded, deadline_ms))

    def _complain(self, deadline_ms: float) -> None:
        """Says that nothing fits, at most once in ``LONG_S``."""
        if self._clock() - self._complained >= LONG_S:
            self._complained = self._clock()
            logger.warning("no member of the pool meets %.3g ms under the present load; the fastest runs", deadline_ms)

    def _leave_out_broken(self) -> None:
        """Members that cannot be loaded are no longer chosen from."""
        new = self.chooser.leave_out(self.engine.broken)
        for number in new:
            logger.error("member %s is left out: %s", self.names[number], self.engine.broken[number])
            self._event("broken", number, self.engine.active)
        if new:
            self._choose(self._decided_for)

    def _event(self, what: str, before: int, after: int) -> None:
        self.counters.event(self._clock() - self._began, what, self.names[before], self.names[after])

    def _wants_search(self) -> bool:
        """Whether nothing in the pool has fitted for long, so that the rule ``search`` should run again."""
        return self._without_fit is not None and self._clock() - self._without_fit >= LONG_S
