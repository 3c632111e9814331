"""Operators x device -> LUT, and whole SubNets on the device (rules profile and validate).

The names below are imported on first use: a device is asked whether it can be used before anything else is done, and
what measures on it takes seconds to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autotailor.profiling.device import DeviceConfig, Fingerprint
    from autotailor.profiling.endpoint import check, check_configuration, fusion_rules, read_table
    from autotailor.profiling.errors import DeviceError, LUTError, ProfilingError
    from autotailor.profiling.lut import LUT, LUTRow
    from autotailor.profiling.memory import MemoryUse, measure_baseline, measure_memory
    from autotailor.profiling.networks import (
        Measurement,
        convert,
        converted_file,
        mean_of_rounds,
        measure_networks,
        measure_rounds,
        run_network,
    )
    from autotailor.profiling.profiler import profile
    from autotailor.profiling.record import Record
    from autotailor.profiling.runtimes import RUNTIMES, exporting_runtime, open_runtime
    from autotailor.profiling.session import Session
    from autotailor.profiling.store import Store, StoredDevice
    from autotailor.profiling.transports import TRANSPORTS, open_transport
    from autotailor.profiling.validation import validate
    from autotailor.profiling.writable import Missing, check_writable, missing_operators

__all__ = [
    "LUT",
    "RUNTIMES",
    "TRANSPORTS",
    "DeviceConfig",
    "DeviceError",
    "Fingerprint",
    "LUTError",
    "LUTRow",
    "Measurement",
    "MemoryUse",
    "Missing",
    "ProfilingError",
    "Record",
    "Session",
    "Store",
    "StoredDevice",
    "check",
    "check_configuration",
    "check_writable",
    "convert",
    "converted_file",
    "exporting_runtime",
    "fusion_rules",
    "mean_of_rounds",
    "measure_baseline",
    "measure_memory",
    "measure_networks",
    "measure_rounds",
    "missing_operators",
    "open_runtime",
    "open_transport",
    "profile",
    "read_table",
    "run_network",
    "validate",
]

_NAMES: dict[str, tuple[str, ...]] = {
    "device": ("DeviceConfig", "Fingerprint"),
    "endpoint": ("check", "check_configuration", "fusion_rules", "read_table"),
    "errors": ("DeviceError", "LUTError", "ProfilingError"),
    "lut": ("LUT", "LUTRow"),
    "memory": ("MemoryUse", "measure_baseline", "measure_memory"),
    "networks": (
        "Measurement",
        "convert",
        "converted_file",
        "mean_of_rounds",
        "measure_networks",
        "measure_rounds",
        "run_network",
    ),
    "profiler": ("profile",),
    "record": ("Record",),
    "runtimes": ("RUNTIMES", "exporting_runtime", "open_runtime"),
    "session": ("Session",),
    "store": ("Store", "StoredDevice"),
    "transports": ("TRANSPORTS", "open_transport"),
    "validation": ("validate",),
    "writable": ("Missing", "check_writable", "missing_operators"),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'autotailor.profiling' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"autotailor.profiling.{_HOMES[name]}"), name)
    return value
