"""Operators x device -> LUT, and whole SubNets on the device (rules profile and validate)."""

from __future__ import annotations

from autotailor.profiling.device import DeviceConfig, Fingerprint
from autotailor.profiling.endpoint import check, check_configuration, fusion_rules, read_table
from autotailor.profiling.errors import DeviceError, LUTError, ProfilingError
from autotailor.profiling.lut import LUT, LUTRow
from autotailor.profiling.memory import MemoryUse, measure_baseline, measure_memory
from autotailor.profiling.networks import (
    Measurement,
    convert,
    converted_file,
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
    "ProfilingError",
    "Record",
    "Session",
    "Store",
    "StoredDevice",
    "check",
    "check_configuration",
    "convert",
    "converted_file",
    "exporting_runtime",
    "fusion_rules",
    "measure_baseline",
    "measure_memory",
    "measure_networks",
    "measure_rounds",
    "open_runtime",
    "open_transport",
    "profile",
    "read_table",
    "run_network",
    "validate",
]
