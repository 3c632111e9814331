"""Profiling: measures operators on a device into a LUT, and whole SubNets (rules ``profile`` and ``validate``).

The names below are imported on first use (``autotailor.lazy``). A run checks first whether its device can be used, and
must not wait for the modules that measure, which take seconds to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.profiling.device import DeviceConfig, Fingerprint
    from autotailor.profiling.endpoint import check, check_configuration, fusion_rules, read_table
    from autotailor.profiling.errors import DeviceError, LUTError, ProfilingError
    from autotailor.profiling.measuring.memory import measure_baseline, measure_memory
    from autotailor.profiling.measuring.profiler import profile
    from autotailor.profiling.measuring.session import Session
    from autotailor.profiling.networks.conversion import convert, converted_file
    from autotailor.profiling.networks.timing import Measurement, mean_of_rounds, measure_networks, measure_rounds
    from autotailor.profiling.networks.validation import measure_subnets, validate
    from autotailor.profiling.networks.writable import Missing, check_writable, missing_operators
    from autotailor.profiling.records.events import PeakMemory
    from autotailor.profiling.records.record import Record
    from autotailor.profiling.runtimes import RUNTIMES, exporting_runtime, open_runtime
    from autotailor.profiling.table.lut import LUT, LUTRow
    from autotailor.profiling.table.store import Store, StoredDevice
    from autotailor.profiling.transports import TRANSPORTS, open_transport

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
    "Missing",
    "PeakMemory",
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
    "measure_subnets",
    "missing_operators",
    "open_runtime",
    "open_transport",
    "profile",
    "read_table",
    "validate",
]

_HOMES = {
    "DeviceConfig": "autotailor.profiling.device",
    "DeviceError": "autotailor.profiling.errors",
    "Fingerprint": "autotailor.profiling.device",
    "LUT": "autotailor.profiling.table.lut",
    "LUTError": "autotailor.profiling.errors",
    "LUTRow": "autotailor.profiling.table.lut",
    "Measurement": "autotailor.profiling.networks.timing",
    "Missing": "autotailor.profiling.networks.writable",
    "PeakMemory": "autotailor.profiling.records.events",
    "ProfilingError": "autotailor.profiling.errors",
    "RUNTIMES": "autotailor.profiling.runtimes",
    "Record": "autotailor.profiling.records.record",
    "Session": "autotailor.profiling.measuring.session",
    "Store": "autotailor.profiling.table.store",
    "StoredDevice": "autotailor.profiling.table.store",
    "TRANSPORTS": "autotailor.profiling.transports",
    "check": "autotailor.profiling.endpoint",
    "check_configuration": "autotailor.profiling.endpoint",
    "check_writable": "autotailor.profiling.networks.writable",
    "convert": "autotailor.profiling.networks.conversion",
    "converted_file": "autotailor.profiling.networks.conversion",
    "exporting_runtime": "autotailor.profiling.runtimes",
    "fusion_rules": "autotailor.profiling.endpoint",
    "mean_of_rounds": "autotailor.profiling.networks.timing",
    "measure_baseline": "autotailor.profiling.measuring.memory",
    "measure_memory": "autotailor.profiling.measuring.memory",
    "measure_networks": "autotailor.profiling.networks.timing",
    "measure_rounds": "autotailor.profiling.networks.timing",
    "measure_subnets": "autotailor.profiling.networks.validation",
    "missing_operators": "autotailor.profiling.networks.writable",
    "open_runtime": "autotailor.profiling.runtimes",
    "open_transport": "autotailor.profiling.transports",
    "profile": "autotailor.profiling.measuring.profiler",
    "read_table": "autotailor.profiling.endpoint",
    "validate": "autotailor.profiling.networks.validation",
}
__getattr__ = attach(__name__, _HOMES)
