"""Converts whole networks into the files of a runtime, finds these files again, and runs networks on images."""

from __future__ import annotations

import shutil
from pathlib import Path

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.runtimes import open_runtime


def convert(onnx_path: Path, directory: Path, device: DeviceConfig) -> None:
    """Converts an ONNX file into the files of the device's runtime, in single precision."""
    open_runtime(device).convert(onnx_path, directory)


def converted_file(onnx_path: Path, device: DeviceConfig, directory: Path) -> Path:
    """The ONNX file if the files of the device's runtime lie beside it; else a copy, converted in ``directory``."""
    runtime = open_runtime(device)
    if all((onnx_path.parent / name).exists() for name in runtime.files):
        return onnx_path
    directory.mkdir(parents=True, exist_ok=True)
    copy = Path(shutil.copyfile(onnx_path, directory / onnx_path.name))
    runtime.convert(copy, directory)
    return copy
