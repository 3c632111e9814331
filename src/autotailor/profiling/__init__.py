"""Profiling: measures operators on a device into a LUT, and whole SubNets (rules ``profile`` and ``validate``).

The names below are imported on first use (``autotailor.lazy``). A run checks first whether its device can be used, and
must not wait for the modules that measure, which take seconds to import.
"""

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.profiling.device import DeviceConfig, Fingerprint
    from autotailor.profiling.endpoint import check, check_configuration, fusion_rules, read_table
    from autotailor.profiling.errors import DeviceError, LUTError, ProfilingError
    from autotailor.profiling.measuring.memory import measure_baseline, measure_memory
    from autotailor.profiling.measuring.profiler import profile
    from autotailor.profiling.measuring.session import Session
    from autotailor.profiling.networks.timing import Measurement, mean_of_rounds, measure_networks, measure_rounds
    from autotailor.profiling.networks.validation import convert, converted_file, measure_subnets, validate
    from autotailor.profiling.networks.writable import Missing, check_writable, missing_operators
    from autotailor.profiling.records.events import PeakMemory
    from autotailor.profiling.records.record import Record
    from autotailor.profiling.runtimes import RUNTIMES, exporting_runtime, open_runtime
    from autotailor.profiling.table.lut import LUT, LUTRow
    from autotailor.profiling.table.store import Store, StoredDevice
    from autotailor.profiling.transports import TRANSPORTS, open_transport

__getattr__ = attach(__name__)
