"""Peak memory of whole networks, each in a process on the device that runs nothing else."""

from collections.abc import Mapping
from pathlib import Path

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.measuring.session import Session, session_on
from autotailor.profiling.records.events import PeakMemory


def measure_memory(
    networks: Mapping[str, tuple[Path, tuple[int, ...]]], device: DeviceConfig | Session
) -> dict[str, PeakMemory]:
    """Peak memory of converted networks.

    Args:
        networks: name to the folder with the network's files and the shape of its input, ``[1, 3, r, r]``.
        device: the device, or a session that is open there; its system must be Linux.

    Raises:
        DeviceError: the device cannot be used.
        ProfilingError: the runner cannot tell.
    """
    with session_on(device) as session:
        return {
            name: session.weigh(session.network(name, directory, (shape[1:],)))
            for name, (directory, shape) in networks.items()
        }


def measure_baseline(device: DeviceConfig | Session) -> float:
    """What a process of the runtime holds besides a network's weights, activations and workspace, MiB.

    This is the peak of an empty network, and the only parameter of ``SuperNet.peak_memory`` that is measured once for
    a device. It is not fitted to networks, so their measured peaks can judge the predictions.

    Raises:
        DeviceError: the device cannot be used.
        ProfilingError: the runner cannot tell.
    """
    with session_on(device) as session:
        return session.weigh(session.runtime.harness()).running_mb
