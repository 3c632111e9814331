"""ncnn in the compiled runner (``make runner``, ``autotailor runner``), for devices without Python."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.errors import DeviceError
from autotailor.profiling.runtimes.base import journal_of
from autotailor.profiling.runtimes.ncnn.runtime import NcnnRuntime
from autotailor.profiling.runtimes.runner.binary import layers_left_out, runner_binary
from autotailor.profiling.runtimes.runner.manifest import manifest_text
from autotailor.profiling.runtimes.self_description import self_description
from autotailor.profiling.transports.base import Transport
from autotailor.project import places

VERSION_SECONDS = 60.0


def _version(device: str, said: Sequence[str]) -> dict[str, Any]:
    """What the runner says about itself; raises DeviceError where the answer makes no sense."""
    about = self_description(said, "ncnn")
    if about is None:
        raise DeviceError(
            f"device {device}: its runner prints {str(said[:1])[:200]} instead of a version: build the runner again "
            f"with: {places.RUNNER_COMMAND}"
        )
    return about


class NcnnCompiledRuntime(NcnnRuntime):
    """ncnn in the compiled runner, with the same programs and protocol as the wheel's.

    The wheel on this computer still converts networks and runs them on images.
    """

    resumes = True
    remote = True

    def __init__(self, device: DeviceConfig) -> None:
        super().__init__(device)
        self.name = device.runtime
        self._runner = ""
        self._about: Mapping[str, Any] | None = None

    def facts(self) -> Mapping[str, Any]:
        """What the runner on the device says about itself, and the options.

        Before ``prepare`` has asked the runner, the facts are those of the wheel.
        """
        if self._about is None:
            return super().facts()
        return {"name": self.name, "version": self._about["ncnn"], "runner": self._about, "options": self.options()}

    def check_device(self, hardware: Mapping[str, Any]) -> None:
        """Raises DeviceError unless the runner for the device's processor is built."""
        runner_binary(self.device.name, hardware)

    def lacking_layers(self) -> frozenset[str]:
        """Layers that any runner built here leaves out, whichever runner the device needs."""
        return layers_left_out()

    def prepare(self, transport: Transport, hardware: Mapping[str, Any]) -> None:
        """Sends the runner, which later runs find again, and asks for its version."""
        binary = runner_binary(self.device.name, hardware)
        self._runner = transport.keep(binary)
        said: list[str] = []
        code = transport.run([self._runner, "--version"], said.append, VERSION_SECONDS)
        if code != 0:
            raise DeviceError(
                f"device {self.device.name}: {binary} does not run there (exit code {code}, "
                f"{transport.last_error or said}): build the runner for this device with: {places.RUNNER_COMMAND}; "
                "or set device.folder to a folder in which programs may be executed"
            )
        self._about = _version(device=self.device.name, said=said)

    def manifest(self, manifest: Mapping[str, Any]) -> str:
        """The manifest as lines of text, because the compiled runner reads no JSON."""
        return manifest_text(manifest, uuid.uuid4().hex)

    def runner(self, manifest: str) -> list[str]:
        """The command of the compiled runner, with a journal beside the manifest."""
        return [self._runner, manifest, journal_of(manifest)]
