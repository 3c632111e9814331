"""Peak memory of whole networks, each in a process on the device that runs nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.measuring.session import Session, session_on
from autotailor.profiling.runtimes.base import Program


@dataclass(frozen=True)
class MemoryUse:
    """Peaks of ``VmHWM`` above what the process held before, without pages of files, MiB.

    Attributes:
        loading_mb: while the network is loaded; weights may be there twice then.
        running_mb: while it runs: what ``SuperNet.peak_memory`` predicts.
    """

    loading_mb: float
    running_mb: float


def measure_memory(
    networks: Mapping[str, tuple[Path, tuple[int, ...]]], device: DeviceConfig | Session
) -> dict[str, MemoryUse]:
    """Peak memory of converted networks.

    Args:
        networks: name to the folder with its files and the shape of its input, ``[1, 3, r, r]``.
        device: where (or a session that is open there); it must be a Linux.

    Raises:
        DeviceError: the device cannot be used.
        ProfilingError: the runner cannot tell.
    """
    with session_on(device) as session:
        return {
            name: _weighed(session, session.network(name, directory, (shape[1:],)))
            for name, (directory, shape) in networks.items()
        }


def measure_baseline(device: DeviceConfig | Session) -> float:
    """What a process of the runtime holds besides a network's weights, activations and workspace, MiB.

    The peak of a network of nothing: the one parameter of a device in ``SuperNet.peak_memory``. It is no network's that
    is judged by it.

    Raises:
        DeviceError: the device cannot be used.
        ProfilingError: the runner cannot tell.
    """
    with session_on(device) as session:
        return _weighed(session, session.runtime.harness()).running_mb


def _weighed(session: Session, program: Program) -> MemoryUse:
    found = session.weigh(program)
    return MemoryUse(found["loading_mb"], found["running_mb"])
