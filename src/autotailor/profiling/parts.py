"""Opens a device's runtime or transport by name. The names stand in ``runtimes`` and ``transports``."""

import inspect
from collections.abc import Callable
from typing import TypeVar

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.errors import DeviceError

Part = TypeVar("Part")
Registry = dict[str, Callable[[DeviceConfig], Part]]


def open_part(kind: str, name: str, registry: Registry[Part], device: DeviceConfig, base: type[object]) -> Part:
    """Makes a device's runtime or transport by name.

    Args:
        kind: ``runtime`` or ``transport``, which is the key in the configuration's section ``device``.
        name: the runtime's or transport's name.
        registry: all known runtimes or transports.
        device: the device's configuration, for the runtime or transport.
        base: the class that every runtime or transport extends.

    Raises:
        DeviceError: the registry does not hold the name, or what it holds makes no runtime or transport.
    """
    if name not in registry:
        raise DeviceError(
            f"device {device.name}: device.{kind}: unknown {kind} {name!r}; known are {', '.join(registry)}"
        )
    make, where = registry[name], f"device {device.name}: device.{kind}: {kind} {name!r}"
    if inspect.isabstract(make):
        missing = ", ".join(sorted(getattr(make, "__abstractmethods__", ())))
        raise DeviceError(f"{where}: {make.__name__} lacks {missing}; define all that {base.__name__} leaves abstract")
    part = make(device)
    if not isinstance(part, base):
        raise DeviceError(
            f"{where}: what is registered made {type(part).__name__}, expected a {base.__name__}; register a class "
            f"that extends {base.__name__}, or a function that returns one of its objects"
        )
    return part
