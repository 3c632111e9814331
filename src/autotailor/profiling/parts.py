"""Opens a device's runtime or transport by name. The names stand in ``runtimes`` and ``transports``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.errors import DeviceError

Part = TypeVar("Part")
Registry = dict[str, Callable[[DeviceConfig], Part]]


def open_part(kind: str, name: str, registry: Registry[Part], device: DeviceConfig) -> Part:
    """Makes a device's runtime or transport by name.

    Args:
        kind: ``runtime`` or ``transport``, which is the key in the configuration's section ``device``.
        name: the runtime's or transport's name.
        registry: all known runtimes or transports.
        device: the device's configuration, for the runtime or transport.

    Raises:
        DeviceError: the registry does not hold the name.
    """
    if name not in registry:
        raise DeviceError(
            f"device {device.name}: device.{kind}: unknown {kind} {name!r}; known are {', '.join(registry)}"
        )
    return registry[name](device)
