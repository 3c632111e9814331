"""Operators x device -> LUT, and whole SubNets on the device (rules profile and validate).

The names below are imported on first use: a device is asked whether it can be used before anything else is done, and
what measures on it takes seconds to import (``autotailor.lazy``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotailor.lazy import attach

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

_HOMES = {
    "DeviceConfig": "autotailor.profiling.device",
    "DeviceError": "autotailor.profiling.errors",
    "Fingerprint": "autotailor.profiling.device",
    "LUT": "autotailor.profiling.lut",
    "LUTError": "autotailor.profiling.errors",
    "LUTRow": "autotailor.profiling.lut",
    "Measurement": "autotailor.profiling.networks",
    "MemoryUse": "autotailor.profiling.memory",
    "Missing": "autotailor.profiling.writable",
    "ProfilingError": "autotailor.profiling.errors",
    "RUNTIMES": "autotailor.profiling.runtimes",
    "Record": "autotailor.profiling.record",
    "Session": "autotailor.profiling.session",
    "Store": "autotailor.profiling.store",
    "StoredDevice": "autotailor.profiling.store",
    "TRANSPORTS": "autotailor.profiling.transports",
    "check": "autotailor.profiling.endpoint",
    "check_configuration": "autotailor.profiling.endpoint",
    "check_writable": "autotailor.profiling.writable",
    "convert": "autotailor.profiling.networks",
    "converted_file": "autotailor.profiling.networks",
    "exporting_runtime": "autotailor.profiling.runtimes",
    "fusion_rules": "autotailor.profiling.endpoint",
    "mean_of_rounds": "autotailor.profiling.networks",
    "measure_baseline": "autotailor.profiling.memory",
    "measure_memory": "autotailor.profiling.memory",
    "measure_networks": "autotailor.profiling.networks",
    "measure_rounds": "autotailor.profiling.networks",
    "missing_operators": "autotailor.profiling.writable",
    "open_runtime": "autotailor.profiling.runtimes",
    "open_transport": "autotailor.profiling.transports",
    "profile": "autotailor.profiling.profiler",
    "read_table": "autotailor.profiling.endpoint",
    "run_network": "autotailor.profiling.networks",
    "validate": "autotailor.profiling.validation",
}
__getattr__ = attach(__name__, _HOMES)
