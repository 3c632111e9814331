"""Runtimes: what executes networks on a device. One file and one line here make a new one."""

from __future__ import annotations

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.registry import Registry, open_part
from autotailor.profiling.runtimes.base import Runtime
from autotailor.profiling.runtimes.ncnn import NcnnRuntime
from autotailor.profiling.runtimes.ncnn_compiled import NcnnCompiledRuntime
from autotailor.profiling.runtimes.onnxruntime import OnnxRuntime
from autotailor.profiling.runtimes.torch import TorchRuntime

RUNTIMES: Registry[Runtime] = {
    "ncnn": NcnnRuntime,
    "ncnn-compiled": NcnnCompiledRuntime,
    "onnxruntime": OnnxRuntime,
    "torch": TorchRuntime,
}
"""Name to what makes it; None: planned, not built yet."""


def open_runtime(device: DeviceConfig) -> Runtime:
    """The runtime of a device.

    Raises:
        DeviceError: it is unknown or not built yet.
    """
    return open_part("runtime", device.runtime, RUNTIMES, device)


__all__ = ["RUNTIMES", "NcnnRuntime", "Runtime", "open_runtime"]
