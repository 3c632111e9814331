"""Finds the compiled programs for devices where ``make runner``, ``make serve`` or ``autotailor runner`` leave them."""

import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autotailor.profiling.errors import DeviceError
from autotailor.project import places

FOLDER = places.runner_builds()
NAME = "autotailor-runner"
SERVER = "autotailor-serve"
AARCH64 = ("aarch64", "arm64")
VARIABLES = {"host": "AUTOTAILOR_RUNNER", "aarch64": "AUTOTAILOR_RUNNER_AARCH64"}
"""Targets of ``src/runner/build.py``, each with the environment variable that names another binary."""

LEFT_OUT = re.compile(rb"autotailor-runner without layers:((?: [a-z0-9_]+)*)")
"""The text in a runner's file that lists the ncnn layers which the runner lacks."""


def runner_binary(device: str, hardware: Mapping[str, Any]) -> Path:
    """The path of the runner for a device.

    Args:
        device: the device's name, for messages.
        hardware: the device's facts, with ``machine`` and ``system``.

    Raises:
        DeviceError: no runner supports the device's processor, or the runner is not built.
    """
    path = _path(runner_target(device, hardware))
    if not os.access(path, os.X_OK):
        raise DeviceError(
            f"device {device}: the compiled runner is missing at {path}: build it with: {places.RUNNER_COMMAND}"
        )
    return path


def server_binary(device: str, hardware: Mapping[str, Any]) -> Path:
    """The path of what serves pools on a device; raises DeviceError as ``runner_binary`` does."""
    target = runner_target(device, hardware)
    path = (FOLDER / target / SERVER).resolve()
    if not os.access(path, os.X_OK):
        raise DeviceError(
            f"device {device}: {SERVER} is missing at {path}: build it with: {places.serve_command(target)}"
        )
    return path


def built_runners() -> dict[str, Path]:
    """The runners that have been built, by target."""
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
        f"device {device}: it is a {system} on {machine}, but the compiled runner is built for this computer "
        f"({platform.system()} on {platform.machine()}) and for Linux or Android on aarch64 (64 bits): add a target to "
        "src/runner/build.py"
    )


def layers_left_out() -> frozenset[str]:
    """Types of ncnn's layers, in lower case, that the runners built here lack.

    A runner's file contains the list of its missing layers, so that a runner for another processor can be asked, too. A
    missing runner, or one that is older than the list, adds nothing.
    """
    layers: set[str] = set()
    for path in built_runners().values():
        if match := LEFT_OUT.search(path.read_bytes()):
            layers.update(match.group(1).decode().split())
    return frozenset(layers)
