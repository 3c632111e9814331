"""Metrics of the machine while a rule runs, under the names of MLflow's own monitor, which would import MLflow.

MLflow shows metrics whose names begin with ``system/`` on a page of their own. As with MLflow's monitor,
``MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING=false`` switches them off (here they are on), and
``MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL`` is the number of seconds between two samples.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

from autotailor.tracking.journal import Child

ENABLED, INTERVAL = "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING", "MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL"
SECONDS = 10.0
MEGABYTE = 1e6


@contextmanager
def watched(run: Child) -> Iterator[None]:
    """Samples the machine's metrics into a journal while the block runs, and once at its end."""
    if os.environ.get(ENABLED, "true").strip().lower() in ("false", "0"):
        yield
        return
    machine, ended = _Machine(), threading.Event()

    def sample() -> None:
        step = 0
        while not ended.wait(_interval()):
            run.metrics(machine.metrics(), step)
            step += 1
        run.metrics(machine.metrics(), step)

    thread = threading.Thread(target=sample, name="system metrics", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _interval() -> float:
    """Seconds between two samples; what is no number above zero is the default."""
    with suppress(ValueError):
        seconds = float(os.environ.get(INTERVAL, SECONDS))
        return seconds if seconds > 0 else SECONDS
    return SECONDS


class _Machine:
    """This machine, from its creation on."""

    def __init__(self) -> None:
        psutil.cpu_percent()  # the share is that since the last call
        self._network = _transferred()
        self._gpus = _gpus()

    def metrics(self) -> dict[str, float]:
        """The share of the processors since the last call, and what memory, disk, network and GPUs say now."""
        memory, disk = psutil.virtual_memory(), psutil.disk_usage(os.curdir)
        received, sent = (now - begin for now, begin in zip(_transferred(), self._network, strict=True))
        found = {
            "cpu_utilization_percentage": psutil.cpu_percent(),
            "system_memory_usage_megabytes": memory.used / MEGABYTE,
            "system_memory_usage_percentage": 100 * memory.used / memory.total,
            "disk_usage_megabytes": disk.used / MEGABYTE,
            "disk_usage_percentage": disk.percent,
            "disk_available_megabytes": disk.free / MEGABYTE,
            "network_receive_megabytes": received,
            "network_transmit_megabytes": sent,
        }
        for number, gpu in enumerate(self._gpus):
            found |= {f"gpu_{number}_{key}": value for key, value in gpu.metrics().items()}
        return {f"system/{key}": round(float(value), 1) for key, value in found.items()}


class _Gpu:
    """One GPU of NVIDIA, asked through its management library."""

    def __init__(self, library: object, handle: object) -> None:
        self._library, self._handle = library, handle

    def metrics(self) -> dict[str, float]:
        """Memory and utilization; what the GPU does not tell is left out."""
        found: dict[str, float] = {}
        with suppress(Exception):  # the library's errors have no common base that could be named without it
            memory = self._library.nvmlDeviceGetMemoryInfo(self._handle)  # type: ignore[attr-defined]
            found["memory_usage_megabytes"] = memory.used / MEGABYTE
            found["memory_usage_percentage"] = 100 * memory.used / memory.total
        with suppress(Exception):
            rates = self._library.nvmlDeviceGetUtilizationRates(self._handle)  # type: ignore[attr-defined]
            found["utilization_percentage"] = rates.gpu
        return found


def _gpus() -> list[_Gpu]:
    """The GPUs of this machine; none where the library of NVIDIA (package nvidia-ml-py) or a GPU is missing."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return [_Gpu(pynvml, pynvml.nvmlDeviceGetHandleByIndex(k)) for k in range(pynvml.nvmlDeviceGetCount())]
    except Exception:  # ImportError, or an error of the library: there is no driver
        return []


def _transferred() -> tuple[float, float]:
    """Megabytes received and sent since the machine has started."""
    counted = psutil.net_io_counters()
    return (counted.bytes_recv / MEGABYTE, counted.bytes_sent / MEGABYTE) if counted else (0.0, 0.0)
