"""The SuperNet of a finished run, as a user has it: weights that arrived, and few pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import autotailor
from autotailor import config, data
from autotailor.data.splits import DataSplits
from autotailor.ir.supernet import SuperNet
from autotailor.task import of
from evaluated.network import Network


@dataclass(frozen=True)
class FinishedNetwork(Network):
    """A model of a project, whose ``directory`` holds the run.

    Attributes:
        device: as the run was started with.
    """

    device: str = "host"

    @cached_property
    def configuration(self) -> Mapping[str, Any]:
        """The composed configuration."""
        return config.compose(self.directory / "conf", self.model, self.device, list(self.overrides))

    @cached_property
    def net(self) -> SuperNet:
        """The SuperNet that SubNets inherit from."""
        return autotailor.load(self.folder / "supernet.pt")

    @cached_property
    def data(self) -> DataSplits:
        """The pictures."""
        return data.load(self.configuration["data"])

    @property
    def folder(self) -> Path:
        """Of the model's results."""
        return self.directory / "results" / self.model

    @property
    def chance(self) -> float:
        """Share of right answers that guessing has, as runs count it."""
        return of(self.data.validation).chance(self.data.validation.labels)
