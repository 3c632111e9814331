"""A service for tests of the wire protocol: it says what it was asked, and can be slow."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from autotailor.runtime import PoolError
from autotailor.runtime.wire import Address, Flag, Reply, Request, Server


class Recorder:
    """Answers a picture with its first numbers, doubled; holds what it was asked, in order."""

    most_bytes = 4096

    def __init__(self) -> None:
        self.pictures: list[float] = []
        self.settings: dict[str, Any] = {"deadline_ms": 5.0}
        self.may_go = threading.Event()
        self.may_go.set()
        self.running = 0
        self.has_successor, self.is_closed = True, False

    def infer(self, request: Request) -> Reply:
        self.running += 1
        assert self.running == 1, "two requests run at once"
        self.may_go.wait(10)
        self.pictures.append(float(request.picture.flat[0]))
        self.running -= 1
        if self.pictures[-1] < 0:
            raise PoolError("a negative picture")
        if self.pictures[-1] > 1e6:
            raise ZeroDivisionError("a bug")
        return Reply(3, Flag.LATE, 1.5, 1.25, 2 * request.picture.ravel()[:4])

    def status(self) -> Mapping[str, Any]:
        return {"pictures": self.pictures}

    def metrics(self) -> str:
        return f"pictures {len(self.pictures)}\n"

    def set(self, content: Mapping[str, Any]) -> Mapping[str, Any]:
        self.settings |= content
        return self.settings

    def successor(self) -> Callable[[], Recorder]:
        """Another recorder; what it is asked is counted on its own."""
        if not self.has_successor:
            raise PoolError("the folder holds no whole pool")
        self.next = Recorder()

        def take_over() -> Recorder:
            assert self.running == 0, "a request runs"
            return self.next

        return take_over

    def close(self) -> None:
        self.is_closed = True


@contextmanager
def served(address: Address | Path) -> Iterator[tuple[Server, Recorder]]:
    """A server with a recorder, in a thread."""
    recorder = Recorder()
    with Server(recorder, address if isinstance(address, Address) else Address(address)) as server:
        thread = server.start()
        yield server, recorder
    thread.join(5)
    assert not thread.is_alive()


def picture(value: float, shape: tuple[int, ...] = (1, 2, 2)) -> np.ndarray:
    return np.full(shape, value, dtype=np.float32)
