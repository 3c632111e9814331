"""Metrics of the machine while a rule runs, under the names of MLflow's own monitor, which would import MLflow.

MLflow shows metrics whose names begin with ``system/`` on a page of their own. As with MLflow's monitor,
``MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING=false`` switches them off (here they are on), and
``MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL`` is the number of seconds between two samples.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps

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
        return min(seconds, threading.TIMEOUT_MAX) if seconds > 0 else SECONDS
    return SECONDS


class _Machine:
    """This machine, from its creation on."""

    def __init__(self) -> None:
        _processors()  # the share is that since the last call
        self._network = _transferred()
        self._gpus = _gpus()

    def metrics(self) -> dict[str, float]:
        """The share of the processors since the last call, and what memory, disk, network and GPUs say now."""
        values = _processors() | _memory() | _disk()
        values |= {key: now - self._network.get(key, 0.0) for key, now in _transferred().items()}
        for number, gpu in enumerate(self._gpus):
            values |= {f"gpu_{number}_{key}": value for key, value in gpu.metrics().items()}
        return {f"system/{key}": round(float(value), 1) for key, value in values.items()}


def _readable(read: Callable[[], dict[str, float]]) -> Callable[[], dict[str, float]]:
    """Wraps a reader of the machine's state: returns {} where it may not be read, as on phones and in containers."""

    @wraps(read)
    def wrapped() -> dict[str, float]:
        with suppress(OSError, psutil.Error):
            return read()
        return {}

    return wrapped


@_readable
def _processors() -> dict[str, float]:
    return {"cpu_utilization_percentage": psutil.cpu_percent()}


@_readable
def _memory() -> dict[str, float]:
    memory = psutil.virtual_memory()
    return {
        "system_memory_usage_megabytes": memory.used / MEGABYTE,
        "system_memory_usage_percentage": 100 * memory.used / memory.total,
    }


@_readable
def _disk() -> dict[str, float]:
    disk = psutil.disk_usage(os.curdir)
    return {
        "disk_usage_megabytes": disk.used / MEGABYTE,
        "disk_usage_percentage": disk.percent,
        "disk_available_megabytes": disk.free / MEGABYTE,
    }


@_readable
def _transferred() -> dict[str, float]:
    """Megabytes received and sent since the machine has started; none where the machine has no network."""
    counted = psutil.net_io_counters()
    received, sent = (counted.bytes_recv, counted.bytes_sent) if counted else (0, 0)
    return {"network_receive_megabytes": received / MEGABYTE, "network_transmit_megabytes": sent / MEGABYTE}


class _Gpu:
    """One GPU of NVIDIA, asked through its management library."""

    def __init__(self, library: object, handle: object) -> None:
        self._library, self._handle = library, handle

    def metrics(self) -> dict[str, float]:
        """Memory and utilization; what the GPU does not tell is left out."""
        values: dict[str, float] = {}
        with suppress(Exception):  # the library's errors have no common base that could be named without it
            memory = self._library.nvmlDeviceGetMemoryInfo(self._handle)  # type: ignore[attr-defined]
            values["memory_usage_megabytes"] = memory.used / MEGABYTE
            values["memory_usage_percentage"] = 100 * memory.used / memory.total
        with suppress(Exception):
            rates = self._library.nvmlDeviceGetUtilizationRates(self._handle)  # type: ignore[attr-defined]
            values["utilization_percentage"] = rates.gpu
        return values


def _gpus() -> list[_Gpu]:
    """The GPUs of this machine; none where the library of NVIDIA (package nvidia-ml-py) or a GPU is missing."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return [_Gpu(pynvml, pynvml.nvmlDeviceGetHandleByIndex(k)) for k in range(pynvml.nvmlDeviceGetCount())]
    except Exception:  # ImportError, or an error of the library: there is no driver
        return []
