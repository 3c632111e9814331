"""Peak memory of a whole network, in a process on the device that runs nothing else."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.runtimes import open_runtime
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.transports import open_transport


@dataclass(frozen=True)
class MemoryUse:
    """Peaks of ``VmHWM`` above what the process held before, MiB.

    Attributes:
        loading_mb: while the network is loaded; weights may be there twice then.
        running_mb: while it runs: what ``SuperNet.peak_memory`` predicts.
    """

    loading_mb: float
    running_mb: float


def measure_memory(directory: Path, shape: tuple[int, ...], device: DeviceConfig) -> MemoryUse:
    """Peak memory of a converted network.

    Args:
        directory: its files.
        shape: of the input, ``[1, 3, r, r]``.
        device: where; it must be a Linux.

    Raises:
        ProfilingError: the runner cannot tell.
    """
    program = open_runtime(device).network(str(directory), directory, (shape[1:],))
    return _watched(program, device)


def measure_baseline(device: DeviceConfig) -> float:
    """What a process of the runtime holds besides a network's weights, activations and workspace, MiB.

    The peak of a network of nothing: the one parameter of a device in ``SuperNet.peak_memory``. It is no network's that
    is judged by it.

    Raises:
        ProfilingError: the runner cannot tell.
    """
    return _watched(open_runtime(device).harness(), device).running_mb


def _watched(program: Program, device: DeviceConfig) -> MemoryUse:
    """Peaks of a process that runs one program."""
    runtime, found = open_runtime(device), dict[str, Any]()
    if runtime.resumes or device.transport != "local":
        raise ProfilingError(
            f"device {device.name}: whole networks are weighed on this computer only: measure the memory of "
            f"{program.key} with transport=local and runtime=ncnn"
        )

    def on_line(text: str) -> None:
        if text.startswith("{"):
            line = json.loads(text)
            found[line["event"]] = line

    with open_transport(device) as transport, tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"settings": runtime.settings(), "memory": program.to_manifest(), "batches": []}, file)
        file.flush()
        code = transport.run(runtime.runner(transport.push(Path(file.name), "manifest.json")), on_line)
    if "memory" not in found:
        raise ProfilingError(
            f"device {device.name}: the memory of {program.key} was not measured (exit code {code}): "
            f"{transport.last_error or 'the runner said nothing'}"
        )
    return MemoryUse(found["memory"]["loading_mb"], found["memory"]["running_mb"])
