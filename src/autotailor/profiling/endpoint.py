"""Checks of a device, or of a table that replaces the device, before any work is done."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autotailor.ir.fusion.rules import FusionRules
from autotailor.profiling.device import DeviceConfig, Fingerprint
from autotailor.profiling.energy import find_sensor
from autotailor.profiling.errors import DeviceError, LUTError
from autotailor.profiling.host.lock import DeviceLock
from autotailor.profiling.runtimes import open_runtime
from autotailor.profiling.table.lut import LUT
from autotailor.profiling.transports import open_transport

logger = logging.getLogger(__name__)


def check_configuration(device: DeviceConfig) -> None:
    """Raises DeviceError for mistakes that show without asking the device: transport, runtime, options, local cores."""
    open_transport(device).check_configuration()
    open_runtime(device).check()


def check(device: DeviceConfig, *, needs_energy: bool = False) -> None:
    """Asks the device quickly, and without leaving anything there, whether it can be used.

    A device that another run is using at this moment is not asked, because it evidently can be used.

    Args:
        device: the device.
        needs_energy: whether a budget limits energy, which a sensor must tell.

    Raises:
        DeviceError: the device cannot be reached or used, no runner is built for it, or it lacks a sensor of energy.
    """
    check_configuration(device)
    transport = open_transport(device)
    lock = DeviceLock(transport.identity, device.name)
    if lock.is_held():
        logger.warning(
            "device %s is in use by %s: it is not asked; end that to have it checked now",
            device.name,
            lock.holder() or "another process",
        )
        return
    with transport:
        transport.check()
        hardware = transport.probe()
        check_cores(device, hardware)
        open_runtime(device).check_device(hardware)
        if needs_energy and find_sensor(transport) is None:
            raise DeviceError(
                f"device {device.name}: a budget of export.budgets limits energy, and the device has no sensor of it "
                "that can be read; leave this limit out"
            )


def check_cores(device: DeviceConfig, hardware: Mapping[str, Any]) -> None:
    """Refuses cores that the device does not have, and more threads than it has cores."""
    count = hardware.get("cores")
    if count and (missing := [core for core in device.cores if core >= count]):
        raise DeviceError(
            f"device {device.name}: it has no cores {missing}, only 0 to {count - 1}: set device.cores to some of "
            "these, or to [] for any core"
        )
    if count and device.threads > count:
        raise DeviceError(
            f"device {device.name}: threads is {device.threads}, but the device has {count} cores: set device.threads "
            f"to at most {count}"
        )


def fusion_rules(device: DeviceConfig) -> FusionRules:
    """The fusion rules of the device's runtime, with the corrections of the device's configuration."""
    return open_runtime(device).fusion


def read_table(path: Path, device: DeviceConfig) -> LUT:
    """Reads somebody else's LUT, for use where the device itself is not at hand.

    Raises:
        LUTError: the table cannot be read, or was measured with another runtime, other options, another precision or
            another number of threads than the device's configuration asks for.
    """
    lut = LUT.read(path.expanduser())
    if not len(lut):
        raise LUTError(f"{path}: the table holds no operators; export it again")
    if lut.device is None:
        logger.warning(
            "%s does not say (in a column device) on what device and how it was measured: whether it fits the device "
            "%s is not checked; ask who made it",
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
    """Each fact in which a table differs from a device's configuration."""
    runtime, facts = open_runtime(device).facts(), measured.facts
    said = {"precision": facts.get("precision"), "threads": facts.get("threads")}
    configured = {"precision": device.precision, "threads": device.threads}
    for key in ("name", "options"):
        said[f"runtime {key}"], configured[f"runtime {key}"] = facts.get("runtime", {}).get(key), runtime.get(key)
    return [f"{key} {said[key]!r}, not {configured[key]!r}" for key in configured if said[key] != configured[key]]
