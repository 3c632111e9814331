"""ncnn through the compiled runner (``make runner``), as devices without Python have it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.errors import DeviceError
from autotailor.profiling.runtimes.base import journal_of
from autotailor.profiling.runtimes.ncnn.runtime import NcnnRuntime
from autotailor.profiling.runtimes.runner.binary import layers_left_out, runner_binary
from autotailor.profiling.runtimes.runner.manifest import manifest_text
from autotailor.profiling.transports.base import Transport

VERSION_SECONDS = 60.0


def _version(device: str, said: Sequence[str]) -> dict[str, Any]:
    """What the runner says of itself; raises DeviceError where it makes no sense."""
    try:
        about = json.loads(said[0])
    except (ValueError, IndexError, RecursionError):
        about = None
    if not isinstance(about, dict) or not isinstance(about.get("ncnn"), str):
        raise DeviceError(
            f"device {device}: its runner says {str(said[:1])[:200]} instead of its version: build it again with: make "
            "runner"
        )
    return about


class NcnnCompiledRuntime(NcnnRuntime):
    """The same programs and protocol; converting and running on images stay with the wheel, on this computer."""

    resumes = True
    remote = True

    def __init__(self, device: DeviceConfig) -> None:
        super().__init__(device)
        self.name = device.runtime
        self._runner = ""
        self._about: Mapping[str, Any] | None = None

    def facts(self) -> Mapping[str, Any]:
        """What the runner on the device says of itself, and the options; the wheel's version before it is asked."""
        if self._about is None:
            return super().facts()
        return {"name": self.name, "version": self._about["ncnn"], "runner": self._about, "options": self.options()}

    def check_device(self, hardware: Mapping[str, Any]) -> None:
        """The runner for the device's processor must be built."""
        runner_binary(self.device.name, hardware)

    def lacking_layers(self) -> frozenset[str]:
        """Layers that the runners built here leave out, whichever of them the device needs."""
        return layers_left_out()

    def prepare(self, transport: Transport, hardware: Mapping[str, Any]) -> None:
        """Sends the runner, once for all runs, and asks for its version."""
        binary = runner_binary(self.device.name, hardware)
        self._runner = transport.keep(binary)
        said: list[str] = []
        code = transport.run([self._runner, "--version"], said.append, VERSION_SECONDS)
        if code != 0:
            raise DeviceError(
                f"device {self.device.name}: {binary} does not run there (exit code {code}, "
                f"{transport.last_error or said}): build it for this device with: make runner; or set device.folder to "
                "where programs may be executed"
            )
        self._about = _version(device=self.device.name, said=said)

    def manifest(self, manifest: Mapping[str, Any]) -> str:
        """Lines of text: the runner reads no JSON."""
        return manifest_text(manifest, uuid.uuid4().hex)

    def runner(self, manifest: str) -> list[str]:
        """The binary, with a journal beside the manifest."""
        return [self._runner, manifest, journal_of(manifest)]
