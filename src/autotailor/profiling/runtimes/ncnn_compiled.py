"""ncnn through the compiled runner (``make runner``), as devices without Python have it."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from autotailor.ir.sequence import PlacedOperator
from autotailor.profiling.errors import DeviceError
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.ncnn import NcnnRuntime
from autotailor.profiling.runtimes.runner_manifest import manifest_text

BINARY = Path("build/runner/host/autotailor-runner")


class NcnnCompiledRuntime(NcnnRuntime):
    """The same programs and protocol; ``AUTOTAILOR_RUNNER`` names another binary."""

    name = "ncnn-compiled"

    def facts(self) -> Mapping[str, Any]:
        """What the binary says of itself, and the options."""
        done = subprocess.run([runner_binary(), "--version"], capture_output=True, text=True, check=True)
        about = json.loads(done.stdout)
        return {"name": self.name, "version": about["ncnn"], "runner": about, "options": self.options()}

    def in_place(
        self, key: str, operators: Sequence[PlacedOperator], shape: tuple[int, ...], weighed: Collection[str]
    ) -> Program | None:
        """The compiled runner does not stop between operators: they are timed as replicas."""
        return None

    def check(self) -> None:
        """What ncnn needs, and the binary."""
        super().check()
        runner_binary()

    def manifest(self, manifest: Mapping[str, Any]) -> str:
        """Lines of text: the runner reads no JSON."""
        return manifest_text(manifest, uuid.uuid4().hex)

    def runner(self, manifest: str) -> list[str]:
        """The binary, with a journal beside the manifest."""
        return [str(runner_binary()), manifest, f"{manifest}.journal"]


def runner_binary() -> Path:
    """The runner for this machine.

    Raises:
        DeviceError: it is not built.
    """
    path = Path(os.environ.get("AUTOTAILOR_RUNNER", BINARY)).resolve()
    if not os.access(path, os.X_OK):
        raise DeviceError(f"the compiled runner is missing at {path}: build it with: make runner")
    return path
