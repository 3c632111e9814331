"""What runtimes have in common that come as Python wheels and are measured by `runner/loop.py`."""

from __future__ import annotations

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
"""Timed runs in a row, whenever a program's turn comes."""
WALKS = 4
"""Runs step by step for each of those. They come behind them, which are timed as whole networks are."""
SETTLE_MS = 2.0
"""How long a whole network is run before those: one of 0.4 ms is 22 % slower in its second run than in its sixth."""


class WheelRuntime(Runtime):
    """A runtime in a Python process of its own.

    Attributes:
        rules: its fusion rules, before the configuration corrects them.
        packages: Python packages that it needs.
        backend: file that loads and runs its programs.
        remote: whether it measures on other devices than this computer, with a runner of its own.
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
        """Switches of the runtime: those of the precision, then those of the configuration."""

    def facts(self) -> Mapping[str, Any]:
        """Version and options."""
        return {
            "name": self.name,
            "version": importlib.metadata.version(self.packages[0]),
            "options": self.options(),
        }

    def check(self) -> None:
        """The packages must be installed here."""
        if self.device.transport != "local" and not self.remote:
            raise DeviceError(
                f"device {self.device.name}: the runtime '{self.name}' is not built yet for the transport "
                f"'{self.device.transport}', only for 'local' (as in device=host)"
            )
        for package in self.packages:
            if importlib.util.find_spec(package) is None:
                raise DeviceError(f"device {self.device.name}: the Python package {package} is missing: install it")

    def refuse_options(self, known: set[str]) -> None:
        """Raises DeviceError when the configuration sets options that the runtime does not have."""
        if unknown := sorted(set(self.device.options) - known):
            raise DeviceError(
                f"device {self.device.name}: unknown {self.name} options {', '.join(unknown)}; "
                f"known are {', '.join(sorted(known))}"
            )

    def settings(self) -> dict[str, Any]:
        """What the runner sets."""
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
        """The runner in a process of its own: a crash costs one batch."""
        # -P: this folder holds modules named as the packages
        return [sys.executable, "-P", runner_loop.__file__, self.backend, manifest]

    def anchor(self) -> OperatorFeature:
        """A 3x3 convolution in the middle of what networks hold."""
        shape = (1, 48, 14, 14)
        attributes = {"group": 1, "pads": (1, 1, 1, 1), "strides": (1, 1), "dilations": (1, 1)}
        return OperatorFeature("Conv", (shape,), (shape,), ((48, 48, 3, 3), (48,)), freeze_attributes(attributes))


def corrected(rules: FusionRules, device: DeviceConfig) -> FusionRules:
    """Fusion rules with the corrections of the configuration (paper, section 4.2.1)."""
    added = frozenset((str(a), str(b)) for a, b in device.fusion.get("add", ()))
    removed = frozenset((str(a), str(b)) for a, b in device.fusion.get("remove", ()))
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
