"""Holds a device for a command that does not wait: it takes the device at once, or hears who uses it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from autotailor.profiling.host.lock import DeviceLock
from autotailor.profiling.transports.base import Transport


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
