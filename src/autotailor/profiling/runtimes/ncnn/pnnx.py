"""Runs pnnx, ncnn's converter, which is a program inside its Python wheel."""

import importlib.util
import platform
import subprocess
import tempfile
from pathlib import Path

from autotailor.profiling.errors import DeviceError, ProfilingError
from autotailor.profiling.runtimes.ncnn.param import named_once
from autotailor.profiling.runtimes.stopped import check_stopped

SCRATCH = ("pnnxparam", "pnnxbin", "pnnxpy", "pnnxonnx", "ncnnpy")
"""Files that pnnx writes besides the two that ncnn reads."""


def run_pnnx(onnx_path: Path, param: Path, weights: Path) -> None:
    """Converts an ONNX file into ncnn's two files, in single precision.

    Raises:
        DeviceError: pnnx is not installed.
        StoppedError: a signal has ended pnnx that comes from outside.
        ProfilingError: pnnx fails or leaves no files.
    """
    for path in (param, weights):
        path.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="autotailor.pnnx.") as folder:
        files = {key: Path(folder) / key for key in SCRATCH} | {
            "ncnnparam": param.resolve(),
            "ncnnbin": weights.resolve(),
        }
        source = _prepared(onnx_path, Path(folder) / onnx_path.name)
        command = [pnnx_binary(), str(source), "fp16=0", *(f"{key}={path}" for key, path in files.items())]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, cwd=folder)
    check_stopped("pnnx", done.returncode)
    if done.returncode != 0 or not param.exists() or not weights.exists():
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-5:])
        raise ProfilingError(f"{onnx_path}: pnnx cannot convert it (exit code {done.returncode}):\n{tail}")
    param.write_text(named_once(param.read_text(encoding="utf-8")), encoding="utf-8")


def _prepared(onnx_path: Path, target: Path) -> Path:
    """Writes the model so that pnnx reads it right. A file that is no model is copied, and pnnx refuses it."""
    import onnx  # imported here, because most uses of a runtime need no converter
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    from autotailor.profiling.runtimes.ncnn.preparation import prepare

    try:
        onnx.save(prepare(onnx.load(onnx_path)), target)
    except (DecodeError, OSError, ValueError):
        target.write_bytes(onnx_path.read_bytes())
    return target


def pnnx_binary() -> str:
    """Path of the converter inside the wheel pnnx. The wheel is not imported, because that would import torch."""
    spec = importlib.util.find_spec("pnnx")
    name = "pnnx.exe" if platform.system() == "Windows" else "pnnx"
    if spec is None or spec.origin is None or not (Path(spec.origin).parent / name).exists():
        raise DeviceError("the converter pnnx is missing: install the Python package pnnx")
    return str(Path(spec.origin).parent / name)
