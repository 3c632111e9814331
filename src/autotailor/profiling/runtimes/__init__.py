"""Runtimes: what executes networks on a device. One file and one line here make a new one."""

from __future__ import annotations

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.registry import Registry, open_part
from autotailor.profiling.runtimes.base import Runtime
from autotailor.profiling.runtimes.ncnn import NcnnRuntime
from autotailor.profiling.runtimes.ncnn_compiled import NcnnCompiledRuntime
from autotailor.profiling.runtimes.onnxruntime import OnnxRuntime
from autotailor.profiling.runtimes.torch import TorchRuntime
from autotailor.profiling.runtimes.torch_remote import RemoteTorchRuntime


def _ncnn(device: DeviceConfig) -> Runtime:
    """The wheel on this computer, the compiled runner elsewhere."""
    return NcnnRuntime(device) if device.transport == "local" else NcnnCompiledRuntime(device)


def _torch(device: DeviceConfig) -> Runtime:
    """PyTorch on this computer, or that of the device."""
    return TorchRuntime(device) if device.transport == "local" else RemoteTorchRuntime(device)


RUNTIMES: Registry[Runtime] = {
    "ncnn": _ncnn,
    "ncnn-compiled": NcnnCompiledRuntime,
    "onnxruntime": OnnxRuntime,
    "torch": _torch,
}
"""Name to what makes it."""


def open_runtime(device: DeviceConfig) -> Runtime:
    """The runtime of a device.

    Raises:
        DeviceError: it is unknown.
    """
    return open_part("runtime", device.runtime, RUNTIMES, device)


def exporting_runtime() -> Runtime:
    """What writes the files beside ONNX and PyTorch, and runs them on this computer to compare them.

    Every export holds ncnn's, whatever measures. It is compared in single precision, whatever the device computes in.
    """
    return NcnnRuntime(DeviceConfig("export"))


__all__ = ["RUNTIMES", "NcnnRuntime", "Runtime", "exporting_runtime", "open_runtime"]
