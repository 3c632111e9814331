"""Runtimes: what executes networks on a device. One file and one line here make a new one."""

from __future__ import annotations

from collections.abc import Callable

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.errors import DeviceError
from autotailor.profiling.runtimes.base import Runtime
from autotailor.profiling.runtimes.ncnn import NcnnRuntime

RUNTIMES: dict[str, Callable[[DeviceConfig], Runtime] | None] = {
    "ncnn": NcnnRuntime,
    "onnxruntime": None,
    "torch": None,
}
"""Name to what makes it; None: planned, not built yet."""


def open_runtime(device: DeviceConfig) -> Runtime:
    """The runtime of a device.

    Raises:
        DeviceError: it is unknown or not built yet.
    """
    if device.runtime not in RUNTIMES:
        raise DeviceError(f"device {device.name}: unknown runtime {device.runtime!r}; known are {', '.join(RUNTIMES)}")
    make = RUNTIMES[device.runtime]
    if make is None:
        built = ", ".join(name for name, made in RUNTIMES.items() if made is not None)
        raise DeviceError(
            f"device {device.name}: runtime {device.runtime!r} is not built yet; set device.runtime to one of: {built}"
        )
    return make(device)


__all__ = ["RUNTIMES", "NcnnRuntime", "Runtime", "open_runtime"]
