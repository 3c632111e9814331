"""Questions about a device, or about a table that stands for it, that can be answered before any work."""

from __future__ import annotations

from pathlib import Path

from autotailor.ir.feature import FusionRules
from autotailor.profiling.device import DeviceConfig, Fingerprint
from autotailor.profiling.errors import LUTError
from autotailor.profiling.lut import LUT
from autotailor.profiling.runtimes import open_runtime
from autotailor.profiling.transports import open_transport


def check(device: DeviceConfig) -> None:
    """Raises DeviceError at once when the device cannot be used: transport, cores, runtime, options."""
    transport = open_transport(device)
    runtime = open_runtime(device)
    runtime.check()
    transport.check()


def fusion_rules(device: DeviceConfig) -> FusionRules:
    """What the device's runtime fuses, with the corrections of its configuration."""
    return open_runtime(device).fusion


def read_table(path: Path, device: DeviceConfig) -> LUT:
    """Somebody else's LUT, to use where the device itself is not at hand.

    Raises:
        LUTError: it cannot be read, or it was measured with another runtime, other options, another precision or number
            of threads than the device's configuration asks for.
    """
    lut = LUT.read(path.expanduser())
    if not len(lut):
        raise LUTError(f"{path}: no operators in it; export it again")
    if lut.device is not None and (differences := _differences(lut.device, device)):
        raise LUTError(
            f"{path} was measured otherwise than conf/device/{device.name}.yaml says: {'; '.join(differences)}. "
            "Change the device's configuration, or ask for a table that was measured with it"
        )
    return lut


def _differences(measured: Fingerprint, device: DeviceConfig) -> list[str]:
    """What a table's facts say otherwise than a device's configuration."""
    runtime, facts = open_runtime(device).facts(), measured.facts
    said = {"precision": facts.get("precision"), "threads": facts.get("threads")}
    wanted = {"precision": device.precision, "threads": device.threads}
    for key in ("name", "options"):
        said[f"runtime {key}"], wanted[f"runtime {key}"] = facts.get("runtime", {}).get(key), runtime.get(key)
    return [f"{key} {said[key]!r}, not {wanted[key]!r}" for key in wanted if said[key] != wanted[key]]
