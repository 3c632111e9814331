"""Checkpoints of training: written completely or not at all, and never mixed between runs.

A checkpoint belongs to a run by its fingerprint (parameters, data, initial weights) and by the version of the
checkpoint's format. The code does not count, so that a training continues after an upgrade of autotailor.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from autotailor.artifacts import atomic
from autotailor.finetuning.errors import TrainingError

logger = logging.getLogger(__name__)

FORMAT = 1
"""Version of the format: raised when training cannot continue from a state that an earlier autotailor wrote, or when
steps of both versions in one training would give wrong results."""


class Best:
    """The file ``NAME.best.ckpt`` of the checkpoint ``NAME.ckpt``.

    The file is written before a checkpoint that knows its score, so that a training that was killed in between writes
    the same file again.
    """

    def __init__(self, last: Checkpoint) -> None:
        self._file = Checkpoint(beside(last.path), last.fingerprint)

    def write(self, module: nn.Module, epoch: int, score: float) -> None:
        """Replaces the state by a better one.

        Args:
            module: whose state is kept.
            epoch: after which the score was measured, from 0.
            score: accuracy in percent.
        """
        self._file.write({"module": module.state_dict(), "epoch": epoch, "score": score})

    def load(self, module: nn.Module, title: str) -> bool:
        """Gives a module the best state, and returns whether one was measured."""
        state = self._file.read()
        if state is None:
            return False
        module.load_state_dict(state["module"])
        logger.info("%s keeps the state after epoch %d (%.1f %%)", title, state["epoch"] + 1, state["score"])
        return True


def beside(path: Path) -> Path:
    """The file of the best state that belongs to the file of a checkpoint."""
    return path.with_name(f"{path.stem}.best{path.suffix}")


@dataclass(frozen=True)
class Checkpoint:
    """One file with the whole state of a training.

    Attributes:
        path: of the file.
        fingerprint: of everything that the training depends on; a file with another fingerprint is not used.
    """

    path: Path
    fingerprint: str

    def read(self) -> dict[str, Any] | None:
        """The state; None where there is no file of this training. A file that cannot be used gives a warning."""
        if not self.path.is_file():
            return None
        try:
            content = torch.load(self.path, map_location="cpu", weights_only=True)
            recorded, state, version = content["fingerprint"], content["state"], content.get("format", FORMAT)
        except Exception as error:  # torch.load raises many kinds of errors for a damaged file
            logger.warning(
                "%s cannot be read (%s); training starts over, unless a copy is put there",
                self.path,
                type(error).__name__,
            )
            return None
        if recorded != self.fingerprint:
            logger.warning(
                "%s belongs to another configuration or other data; training starts over; the former ones go on",
                self.path,
            )
            return None
        if version != FORMAT:
            logger.warning(
                "%s was written by another version of training; training starts over, and there is nothing to do",
                self.path,
            )
            return None
        if (before := content.get("torch", torch.__version__)) != torch.__version__:
            logger.warning(
                "%s was written with PyTorch %s; training continues with %s (the former repeats it bit by bit)",
                self.path,
                before,
                torch.__version__,
            )
        return dict(state)

    @property
    def previous(self) -> Path:
        """The file of the state before the last one: ``NAME.previous.ckpt``."""
        return self.path.with_name(f"{self.path.stem}.previous{self.path.suffix}")

    def keep(self) -> None:
        """Keeps the state of the file as the previous one, where there is a file."""
        if not self.path.is_file():
            return
        self.previous.unlink(missing_ok=True)
        try:
            os.link(self.path, self.previous)  # ``write`` puts a new file in the place of the old one
        except OSError:  # the file system has no hard links
            shutil.copyfile(self.path, self.previous)

    def write(self, state: Mapping[str, Any]) -> None:
        """Replaces the file by a new state."""
        with atomic(self.path) as temporary:
            about = {"fingerprint": self.fingerprint, "format": FORMAT, "torch": str(torch.__version__)}
            torch.save({**about, "state": dict(state)}, temporary)


def read_any(path: Path) -> dict[str, Any]:
    """The state in the checkpoint of another training.

    Raises:
        TrainingError: there is no such checkpoint, or it cannot be read.
    """
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        state, version = dict(content["state"]), content.get("format", FORMAT)
    except FileNotFoundError as error:
        raise TrainingError(f"resume_from: there is no checkpoint {path}; name one, or set it to null") from error
    except Exception as error:  # torch.load raises many kinds of errors for a damaged file
        raise TrainingError(f"resume_from: {path} is no checkpoint ({type(error).__name__}); name another") from error
    if version != FORMAT:
        raise TrainingError(f"resume_from: {path} was written by another version of training; name another")
    return state
