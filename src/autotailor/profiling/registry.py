"""What the registries of runtimes and transports share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.errors import DeviceError

Part = TypeVar("Part")
Registry = dict[str, Callable[[DeviceConfig], Part]]


def open_part(kind: str, name: str, registry: Registry[Part], device: DeviceConfig) -> Part:
    """A device's runtime or transport by name.

    Args:
        kind: what is looked for, the key of the device's section.
        name: what the device says.
        registry: all that are known.
        device: handed to what makes it.

    Raises:
        DeviceError: it is unknown.
    """
    if name not in registry:
        raise DeviceError(f"device {device.name}: unknown {kind} {name!r}; known are {', '.join(registry)}")
    return registry[name](device)
