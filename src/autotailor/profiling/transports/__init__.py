"""Transports: how commands and files reach a device. One file and one line here make a new one."""

from __future__ import annotations

from collections.abc import Callable

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.errors import DeviceError
from autotailor.profiling.transports.base import Transport
from autotailor.profiling.transports.local import LocalTransport

TRANSPORTS: dict[str, Callable[[DeviceConfig], Transport] | None] = {
    "local": LocalTransport,
    "adb": None,
    "ssh": None,
}
"""Name to what makes it; None: planned, not built yet."""


def open_transport(device: DeviceConfig) -> Transport:
    """The transport of a device.

    Raises:
        DeviceError: it is unknown or not built yet.
    """
    built = ", ".join(name for name, make in TRANSPORTS.items() if make is not None)
    if device.transport not in TRANSPORTS:
        raise DeviceError(
            f"device {device.name}: unknown transport {device.transport!r}; known are {', '.join(TRANSPORTS)}"
        )
    make = TRANSPORTS[device.transport]
    if make is None:
        raise DeviceError(
            f"device {device.name}: transport {device.transport!r} is not built yet; "
            f"use a device whose transport is one of: {built} (for instance device=host)"
        )
    return make(device)


__all__ = ["TRANSPORTS", "LocalTransport", "Transport", "open_transport"]
