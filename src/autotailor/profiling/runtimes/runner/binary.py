"""Which compiled runner a device needs, and where ``make runner`` leaves it."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autotailor.profiling.errors import DeviceError

FOLDER = Path(__file__).resolve().parents[5] / "build" / "runner"
NAME = "autotailor-runner"
AARCH64 = ("aarch64", "arm64")
VARIABLES = {"host": "AUTOTAILOR_RUNNER", "aarch64": "AUTOTAILOR_RUNNER_AARCH64"}
"""Targets of ``src/runner/build.py``, and the environment variables that name other binaries."""

LEFT_OUT = re.compile(rb"autotailor-runner without layers:((?: [a-z0-9_]+)*)")
"""How a runner says what it does not hold."""


def runner_binary(device: str, hardware: Mapping[str, Any]) -> Path:
    """The runner for a device.

    Args:
        device: its name, for messages.
        hardware: its facts, ``machine`` and ``system`` among them.

    Raises:
        DeviceError: there is no runner for its processor, or it is not built.
    """
    path = _path(runner_target(device, hardware))
    if not os.access(path, os.X_OK):
        raise DeviceError(f"device {device}: the compiled runner is missing at {path}: build it with: make runner")
    return path


def built_runners() -> dict[str, Path]:
    """The runners that are there, by target."""
    return {target: path for target in VARIABLES if (path := _path(target)).is_file()}


def _path(target: str) -> Path:
    return Path(os.environ.get(VARIABLES[target], FOLDER / target / NAME)).resolve()


def runner_target(device: str, hardware: Mapping[str, Any]) -> str:
    """The target of ``src/runner/build.py`` for a device; raises DeviceError."""
    machine, system = str(hardware.get("machine")), str(hardware.get("system"))
    if (machine, system) == (platform.machine(), platform.system()):
        return "host"
    if machine in AARCH64 and system == "Linux":
        return "aarch64"
    raise DeviceError(
        f"device {device}: it is a {system} on {machine}, and the compiled runner is built for this computer "
        f"({platform.system()} on {platform.machine()}) and for Linux or Android on aarch64 (64 bits): add a target to "
        "src/runner/build.py"
    )


def layers_left_out() -> frozenset[str]:
    """Types of ncnn's layers, in lower case, that a runner built here does not hold.

    A runner carries the list in itself, so that one for another processor can be asked, too. A runner from before that
    list, or none, tells nothing.
    """
    found: set[str] = set()
    for target, variable in VARIABLES.items():
        path = Path(os.environ.get(variable, FOLDER / target / NAME))
        if path.is_file() and (match := LEFT_OUT.search(path.read_bytes())):
            found.update(match.group(1).decode().split())
    return frozenset(found)
