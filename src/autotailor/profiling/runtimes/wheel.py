"""What the runtimes have in common that are Python wheels and are timed by ``runner/loop.py``."""

import importlib.metadata
import importlib.util
import sys
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from autotailor.ir.feature import OperatorFeature, freeze_attributes
from autotailor.ir.fusion.rules import FusionRules
from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.errors import DeviceError
from autotailor.profiling.runtimes.base import Runtime
from autotailor.profiling.runtimes.runner import loop as runner_loop

RUNS = 3
"""Timed runs in a row on each visit of a program."""
WALKS = 4
"""Runs step by step for each timed run. They follow the timed runs, which thus run in a row as in normal use."""
SETTLE_MS = 2.0
"""Milliseconds for which a whole network runs before its timed runs.

A network of 0.4 ms is 22 % slower in its second run than in its sixth.
"""


class WheelRuntime(Runtime):
    """A runtime in a Python process of its own.

    Attributes:
        rules: the runtime's fusion rules, before the configuration corrects them.
        packages: Python packages that the runtime needs.
        backend: path of the file that loads and runs programs in the runner.
        remote: whether the runtime can also measure on devices other than this computer.
    """

    rules: ClassVar[FusionRules]
    packages: ClassVar[tuple[str, ...]]
    backend: ClassVar[str]
    remote: ClassVar[bool] = False

    def __init__(self, device: DeviceConfig) -> None:
        self.device = device
        self.fusion = corrected(self.rules, device)

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """The runtime's options: those that the precision implies, then those of the configuration."""

    def facts(self) -> Mapping[str, Any]:
        """Name, version and options of the runtime."""
        return {
            "name": self.name,
            "version": importlib.metadata.version(self.packages[0]),
            "options": self.options(),
        }

    def check(self) -> None:
        """Refuses transports on which the runtime cannot measure, and packages that are not installed here."""
        if self.device.transport != "local" and not self.remote:
            raise DeviceError(
                f"device {self.device.name}: the runtime '{self.name}' is not built yet for the transport "
                f"'{self.device.transport}', only for 'local' (as in device=host)"
            )
        for package in self.packages:
            if importlib.util.find_spec(package) is None:
                raise DeviceError(f"device {self.device.name}: the Python package {package} is missing: install it")

    def refuse_options(self, names: set[str]) -> None:
        """Raises DeviceError when the configuration sets options that the runtime does not have."""
        if unknown := sorted(set(self.device.options) - names):
            raise DeviceError(
                f"device {self.device.name}: device.options: unknown {self.name} options {', '.join(unknown)}; "
                f"known are {', '.join(sorted(names))}"
            )

    def settings(self) -> dict[str, Any]:
        """The settings that the runner applies."""
        return {
            "options": self.options(),
            "threads": self.device.threads,
            "cores": list(self.device.cores),
            "warmup": self.device.warmup,
            "runs": RUNS,
            "walks": WALKS,
            "settle_ms": SETTLE_MS,
            "evict_mb": self.device.evict_mb,
        }

    def runner(self, manifest: str) -> list[str]:
        """The command of the runner. It is a process of its own, so that a crash costs no more than one batch."""
        # -P: modules in the loop's folder must not shadow packages
        return [sys.executable, "-P", runner_loop.__file__, self.backend, manifest]

    def anchor(self) -> OperatorFeature:
        """A 3x3 convolution of medium size for today's networks."""
        shape = (1, 48, 14, 14)
        attributes = {"group": 1, "pads": (1, 1, 1, 1), "strides": (1, 1), "dilations": (1, 1)}
        return OperatorFeature("Conv", (shape,), (shape,), ((48, 48, 3, 3), (48,)), freeze_attributes(attributes))


def corrected(rules: FusionRules, device: DeviceConfig) -> FusionRules:
    """Fusion rules with the corrections of the configuration (paper, section 4.2.1)."""
    added, removed = frozenset(device.fusion.get("add", ())), frozenset(device.fusion.get("remove", ()))
    if unknown := sorted(removed - rules.fuses - rules.folds):
        raise DeviceError(f"device {device.name}: fusion.remove names {unknown}, which are no rules of {rules.name}")
    if not added and not removed:
        return rules
    return replace(
        rules,
        name=f"{rules.name}+custom",
        folds=rules.folds - removed,
        fuses=(rules.fuses | added) - removed,
    )
