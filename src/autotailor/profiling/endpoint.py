"""Questions about a device that can be answered before any work."""

from __future__ import annotations

from autotailor.ir.feature import FusionRules
from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.runtimes import open_runtime
from autotailor.profiling.transports import open_transport


def check(device: DeviceConfig) -> None:
    """Raises DeviceError at once when the device cannot be used: transport, cores, runtime, options."""
    transport = open_transport(device)
    runtime = open_runtime(device)
    transport.check()
    runtime.check()


def fusion_rules(device: DeviceConfig) -> FusionRules:
    """What the device's runtime fuses, with the corrections of its configuration."""
    return open_runtime(device).fusion
