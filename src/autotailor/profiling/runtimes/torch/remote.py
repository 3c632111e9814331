"""PyTorch on a board, for instance a Jetson: two files of autotailor run with the board's own Python and PyTorch."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.errors import DeviceError
from autotailor.profiling.runtimes.runner import loop as runner_loop
from autotailor.profiling.runtimes.self_description import self_description
from autotailor.profiling.runtimes.torch.runtime import TorchRuntime
from autotailor.profiling.transports.base import Transport

PYTHON = "python3"
ABOUT = """
import json, sys
if sys.version_info < (3, 10):
    sys.exit("Python %d.%d is older than 3.10" % sys.version_info[:2])
import numpy, torch
about = {"version": torch.__version__, "python": "%d.%d" % sys.version_info[:2]}
if torch.cuda.is_available():
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    about["cuda"] = {"version": torch.version.cuda, "gpus": names}
print(json.dumps(about))
""".strip()

ABOUT_SECONDS = 300.0
"""How long importing PyTorch may take; from a slow memory card it takes a minute."""


def _about(device: str, said: Sequence[str]) -> dict[str, Any]:
    """What the device's PyTorch says about itself; raises DeviceError where the answer makes no sense."""
    about = self_description(said[-1:], "version")
    if about is None:
        raise DeviceError(
            f"device {device}: its Python prints {str(said[-1:])[:200]} instead of PyTorch's version: see what runs "
            "when Python starts there, or name another interpreter in device.options.python"
        )
    return about


class RemoteTorchRuntime(TorchRuntime):
    """PyTorch on another device, with the same programs and protocol. Option ``python`` names its interpreter."""

    remote = True
    option_names = TorchRuntime.option_names | {"python"}

    def __init__(self, device: DeviceConfig) -> None:
        super().__init__(device)
        self._python = str(device.options.get("python", PYTHON))
        self._files: tuple[str, ...] = ()
        self._about: Mapping[str, Any] = {}

    def options(self) -> dict[str, Any]:
        """Where and how PyTorch computes, without the interpreter, which changes no latency."""
        return {key: value for key, value in super().options().items() if key != "python"}

    def facts(self) -> dict[str, Any]:
        """What the PyTorch on the device says about itself, and the options.

        Before ``prepare`` has asked the device, the facts are those of this computer's PyTorch.
        """
        return {**super().facts(), **self._about}

    def prepare(self, transport: Transport, hardware: Mapping[str, Any]) -> None:
        """Asks the device's PyTorch for its version, and sends the runner, which later runs find again."""
        said: list[str] = []
        code = transport.run([self._python, "-c", ABOUT], said.append, ABOUT_SECONDS)
        if code != 0:
            reason = " ".join(transport.last_error.split()[-20:]) or f"exit code {code}"
            raise DeviceError(
                f"device {self.device.name}: {self._python} cannot run PyTorch there ({reason}): install Python 3.10 "
                "or newer with torch and numpy (on a Jetson: NVIDIA's build of torch), or name another interpreter in "
                "device.options.python"
            )
        self._about = _about(self.device.name, said)
        where = str(self.options()["device"])
        if where != "cpu" and "cuda" not in self._about:
            raise DeviceError(
                f"device {self.device.name}: PyTorch {self._about['version']} finds no CUDA there; "
                "set device.options.device=cpu, or install a build with CUDA"
            )
        self._files = tuple(transport.keep(Path(path)) for path in (runner_loop.__file__, self.backend))

    def runner(self, manifest: str) -> list[str]:
        """The command of the same loop as on this computer. ``-B`` writes no compiled modules beside the kept files."""
        return [self._python, "-B", *self._files, manifest]
