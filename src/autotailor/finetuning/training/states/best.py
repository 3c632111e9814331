"""The best state of a training: that with the highest accuracy measured so far, in a file beside the checkpoint."""

from __future__ import annotations

import logging
from pathlib import Path

from torch import nn

from autotailor.finetuning.training.states.checkpoint import Checkpoint

logger = logging.getLogger(__name__)


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
