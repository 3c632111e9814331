"""A lock of each device: one run at a time measures on it, and a command that does not wait hears who uses it."""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autotailor.lock import Holder, Lock
from autotailor.profiling.transports.base import Transport

logger = logging.getLogger(__name__)


SHARED = Path("/tmp")
"""The folder of locks where it can be used. Jobs of a cluster have own folders for temporary files (TMPDIR), and still
measure on one machine."""


class DeviceLock:
    """A lock on a device. The operating system frees the lock when its process ends, even if the process is killed.

    Args:
        identity: the device's identity, see ``Transport.identity``.
        name: the device's name, for messages.
        remind: seconds between two messages while waiting.
    """

    def __init__(self, identity: str, name: str, remind: float = 60.0) -> None:
        place = f"autotailor-device-{re.sub(r'[^A-Za-z0-9.-]+', '-', identity)}.lock"
        self._lock = Lock((SHARED if os.access(SHARED, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())) / place)
        self._name = name
        self._remind = remind

    def acquire(self) -> None:
        """Takes the device. Waits while somebody else holds it, and warns who that is."""
        wait = 0.0
        while not self._lock.take(wait):
            holder = self.holder() or "another process"
            logger.warning(
                "device %s is in use by %s: waiting until it is free; end that to begin now", self._name, holder
            )
            wait = self._remind

    def try_acquire(self) -> bool:
        """Takes the device if nobody else holds it at this moment; returns whether it was taken."""
        return self._lock.take()

    def is_held(self) -> bool:
        """Whether somebody else holds the device at this moment."""
        free = self._lock.take()
        if free:
            self._lock.release()
        return not free

    def release(self) -> None:
        """Gives the device back; safe to call twice."""
        self._lock.release()

    def holder(self) -> Holder | None:
        """Who took the device last; None where this is not known."""
        return self._lock.holder()

    def __enter__(self) -> DeviceLock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


@contextmanager
def held(transport: Transport, name: str) -> Iterator[str | None]:
    """Locks a device and claims its folder for runs, so that nothing is measured there while the block runs.

    Args:
        transport: to the device; its folder there is removed at the end.
        name: the device's name, for messages.

    Yields:
        None where the device is held, else who uses it.

    Raises:
        DeviceError: the device cannot be asked.
    """
    lock = DeviceLock(transport.identity, name)
    if not lock.try_acquire():
        yield str(lock.holder() or "another process")
        return
    try:
        yield transport.claim()
    finally:
        transport.cleanup()
        lock.release()
