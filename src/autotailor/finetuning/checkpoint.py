"""Checkpoints of training: written whole or not at all, and never taken from another run's work.

A checkpoint is known by what its numbers depend on (the fingerprint: parameters, data, initial weights) and by the
version of training that can go on with it, not by the code: a training that was begun before an upgrade goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from autotailor.artifacts import atomic

logger = logging.getLogger(__name__)

FORMAT = 1
"""Version of training: raised when a state that an earlier autotailor wrote cannot be gone on with, or a step that is
begun by one and finished by the other would be wrong."""


@dataclass(frozen=True)
class Checkpoint:
    """One file that holds the whole state of an interrupted run.

    Attributes:
        path: of the file.
        fingerprint: of everything that the run depends on; a file with another one is not used.
    """

    path: Path
    fingerprint: str

    def read(self) -> dict[str, Any] | None:
        """The state, or None where there is none of this run. What cannot be read is said and left aside."""
        if not self.path.is_file():
            return None
        try:
            content = torch.load(self.path, map_location="cpu", weights_only=True)
            recorded, state, version = content["fingerprint"], content["state"], content.get("format", FORMAT)
        except Exception as error:  # torch.load raises whatever a broken file makes it trip over
            logger.warning("%s cannot be read (%s); training starts over", self.path, type(error).__name__)
            return None
        if recorded != self.fingerprint:
            logger.warning("%s belongs to another configuration or other data; training starts over", self.path)
            return None
        if version != FORMAT:
            logger.warning("%s was written by another version of training; training starts over", self.path)
            return None
        if (before := content.get("torch", torch.__version__)) != torch.__version__:
            logger.warning("%s was written with PyTorch %s; %s goes on", self.path, before, torch.__version__)
        return dict(state)

    def write(self, state: Mapping[str, Any]) -> None:
        """Replaces the file by a new state."""
        with atomic(self.path) as temporary:
            about = {"fingerprint": self.fingerprint, "format": FORMAT, "torch": str(torch.__version__)}
            torch.save({**about, "state": dict(state)}, temporary)
