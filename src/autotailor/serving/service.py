"""The service: a pool that runs within this process, by ``libautotailor.so``.

    with Service.of("results/resnet_digits/host/pool", deadline_ms=5.0) as service:
        reply = service.infer(Request(picture))

After each inference the engine learns from its wall and CPU time, and chooses the member that is to run next.
"""

from __future__ import annotations

import ctypes
import json
import os
import time
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from autotailor.serving import library
from autotailor.serving.errors import PoolError
from autotailor.serving.margin import Margin
from autotailor.serving.wire.bodies import Flag, Reply, Request, answers_of, settings_body


class Service:
    """A running pool; a context manager. Several threads may call it; their inferences take turns.

    Attributes:
        names, accuracies: of the members, in the order of the pool; accuracies in percent.
        exits: names of each member's answers, in the order of its network: those of its exits, and ``last``.
        largest_input: shape ``(channels, height, width)`` of the largest input that a member has.
    """

    def __init__(self, handle: int) -> None:
        """Takes over a pool that the library has opened, see ``of``."""
        self._handle = handle
        self._close = weakref.finalize(self, library.function("close"), handle)
        sizes, outputs = (ctypes.c_int(), ctypes.c_int(), ctypes.c_int()), ctypes.c_size_t()
        library.call("sizes", handle, *sizes, outputs)
        channels, height, width = (size.value for size in sizes)
        self.largest_input, self._outputs = (channels, height, width), outputs.value
        members = self.status()["members"]
        self.names = tuple(str(member["name"]) for member in members)
        self.accuracies = tuple(float(member["accuracy"]) for member in members)
        self.exits = tuple(answers_of(member) for member in members)
        self._has_exits, self._margin = any(len(each) > 1 for each in self.exits), Margin()

    @classmethod
    def of(cls, folder: str | Path, deadline_ms: float | None = None, **settings: float | str | None) -> Service:
        """A service of a folder's pool, with its fastest member and the one that is to run first loaded.

        Args:
            folder: of the pool.
            deadline_ms: of one inference; None takes 1.25 times the largest member's latency without load.
            settings: further ones, see ``autotailor_open`` in ``src/runner/serve/autotailor.h``.

        Raises:
            PoolError: the library was not built, the pool cannot be read, or a setting makes no sense.
        """
        given = settings if deadline_ms is None else {"deadline_ms": deadline_ms, **settings}
        return cls(library.made("open", os.fsencode(folder), settings_body(given)))

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the thread that prepares members, and frees everything; safe to call twice. No call may follow."""
        self._close()

    def infer(self, request: Request) -> Reply:
        """Runs the best member on a picture that has the size of one member's input.

        Of a pool with exits the deadline is counted from this call to its return.

        Raises:
            PoolError: the picture does not fit or holds NaN or infinity, the deadline is no time, or ncnn fails.
        """
        begin = time.perf_counter()
        deadline_ms = self._margin.left(request.deadline_ms) if self._has_exits else request.deadline_ms
        if request.picture.ndim != 3:
            raise PoolError(
                f"infer: the picture has the shape {list(request.picture.shape)}, expected [channels, height, width]"
            )
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
            picture = np.ascontiguousarray(request.picture, dtype=np.float32)  # the library reads memory as it lies
        outputs, result, reached = np.empty(self._outputs, np.float32), library.Result(), library.Reached()
        places = outputs.ctypes.data, outputs.size, result, reached
        library.call("infer_exits", self._open(), picture.ctypes.data, *picture.shape, deadline_ms, *places)
        times = result.latency_ms, result.cpu_ms
        reply = Reply(result.member, Flag(result.flags), *times, outputs, reached.exit, reached.confidence)
        self._margin.took(1e3 * (time.perf_counter() - begin), result.latency_ms)
        return reply

    def set(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Changes settings: ``deadline_ms``, ``quantile``, ``rate``, ``battery``, ``pin``, ``quota``, ``thresholds``.

        Returns:
            all settings.

        Raises:
            PoolError: a key is unknown or a value makes no sense; nothing has changed then.
        """
        library.call("set", self._open(), settings_body(content))
        return dict(self.status()["settings"])

    def load(self) -> tuple[float, float]:
        """How much slower operators run than without load, and waiting as a share of CPU time, as the engine learnt."""
        slowdown, waiting = ctypes.c_double(), ctypes.c_double()
        library.call("load", self._open(), slowdown, waiting)
        return slowdown.value, waiting.value

    def status(self) -> dict[str, Any]:
        """What runs, as a JSON object."""
        return dict(json.loads(library.text("status", self._open())))

    def metrics(self) -> str:
        """Counters and gauges in Prometheus' text format."""
        return library.text("metrics", self._open())

    def _open(self) -> int:
        if not self._close.alive:
            raise PoolError("the service is closed: open the pool again with Service.of")
        return self._handle
