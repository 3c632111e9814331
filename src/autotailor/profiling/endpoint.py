"""Questions about a device, or about a table that stands for it, that can be answered before any work."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autotailor.ir.fusion.rules import FusionRules
from autotailor.profiling.device import DeviceConfig, Fingerprint
from autotailor.profiling.errors import DeviceError, LUTError
from autotailor.profiling.host.lock import DeviceLock
from autotailor.profiling.runtimes import open_runtime
from autotailor.profiling.table.lut import LUT
from autotailor.profiling.transports import open_transport

logger = logging.getLogger(__name__)


def check_configuration(device: DeviceConfig) -> None:
    """Raises DeviceError for what can be refused without asking the device: transport, runtime, options, cores here."""
    open_transport(device).check_configuration()
    open_runtime(device).check()


def check(device: DeviceConfig) -> None:
    """Asks the device, quickly and without leaving anything there, whether it can be used.

    A device that another run is using at this moment is there: it is not asked.

    Raises:
        DeviceError: it cannot be reached or used, or no runner is built for it.
    """
    check_configuration(device)
    transport = open_transport(device)
    lock = DeviceLock(transport.identity, device.name)
    if lock.is_held():
        logger.warning("device %s is in use by %s: it is not asked", device.name, lock.holder() or "another process")
        return
    with transport:
        transport.check()
        hardware = transport.probe()
        check_cores(device, hardware)
        open_runtime(device).check_device(hardware)


def check_cores(device: DeviceConfig, hardware: Mapping[str, Any]) -> None:
    """Refuses cores that the device does not have, and more threads than it has cores."""
    count = hardware.get("cores")
    if count and (missing := [core for core in device.cores if core >= count]):
        raise DeviceError(
            f"device {device.name}: it has no cores {missing}, only 0 to {count - 1}: set device.cores to some of "
            "them, or to [] for any"
        )
    if count and device.threads > count:
        raise DeviceError(
            f"device {device.name}: threads is {device.threads}, but it has {count} cores: set device.threads to at "
            "most that"
        )


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
    if lut.device is None:
        logger.warning(
            "%s does not say on what device and how it was measured (column device): that it fits %s is not checked",
            path,
            device.name,
        )
    elif differences := _differences(lut.device, device):
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
