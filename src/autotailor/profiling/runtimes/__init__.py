"""Runtimes: what executes networks on a device. A new runtime is a folder, and a function here with its registration.

Each function imports the runtime that it makes, because the runtimes' libraries load slowly and a run needs only one.
"""

from typing import TYPE_CHECKING

from autotailor.lazy import attach
from autotailor.profiling.device import DeviceConfig, Registry, open_part
from autotailor.profiling.runtimes.base import Runtime

if TYPE_CHECKING:
    from autotailor.profiling.runtimes.ncnn.runtime import NcnnRuntime


def _ncnn(device: DeviceConfig) -> Runtime:
    """The Python wheel of ncnn on this computer, the compiled runner on other devices."""
    if device.transport != "local":
        return _ncnn_compiled(device)
    from autotailor.profiling.runtimes.ncnn.runtime import NcnnRuntime

    return NcnnRuntime(device)


def _ncnn_compiled(device: DeviceConfig) -> Runtime:
    from autotailor.profiling.runtimes.ncnn.compiled import NcnnCompiledRuntime

    return NcnnCompiledRuntime(device)


def _onnxruntime(device: DeviceConfig) -> Runtime:
    from autotailor.profiling.runtimes.onnxruntime.runtime import OnnxRuntime

    return OnnxRuntime(device)


def _torch(device: DeviceConfig) -> Runtime:
    """PyTorch on this computer, or the PyTorch that is installed on another device."""
    if device.transport == "local":
        from autotailor.profiling.runtimes.torch.runtime import TorchRuntime

        return TorchRuntime(device)
    from autotailor.profiling.runtimes.torch.remote import RemoteTorchRuntime

    return RemoteTorchRuntime(device)


RUNTIMES: Registry[Runtime] = {
    "ncnn": _ncnn,
    "ncnn-compiled": _ncnn_compiled,
    "onnxruntime": _onnxruntime,
    "torch": _torch,
}
"""The configuration's name of each runtime, and what makes the runtime for a device."""


def open_runtime(device: DeviceConfig) -> Runtime:
    """The runtime of a device.

    Raises:
        DeviceError: the configuration names an unknown runtime, or what is registered under the name makes none.
    """
    return open_part("runtime", device.runtime, RUNTIMES, device, Runtime)


def exporting_runtime() -> Runtime:
    """The runtime that writes an export's files beside ONNX and PyTorch, and runs them on this computer.

    Every export holds ncnn's files, whichever runtime measures on the device. The exported network is compared with the
    SuperNet in single precision, whatever the device computes in.
    """
    from autotailor.profiling.runtimes.ncnn.runtime import NcnnRuntime

    return NcnnRuntime(DeviceConfig("export"))


__all__ = ["RUNTIMES", "NcnnRuntime", "Runtime", "exporting_runtime", "open_runtime"]

__getattr__ = attach(__name__)
