"""Losses that are no longer finite, or that are far above those of the steps before."""

from __future__ import annotations

import logging
import math
from pathlib import Path

from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.training.config import LoopConfig
from autotailor.finetuning.training.steps import StepFunction, description

logger = logging.getLogger(__name__)
SUSPICIOUS = 5.0
"""Ratio of a loss to the mean of the epoch from which a warning names the step."""
ENOUGH = 16
"""Steps from which the mean loss of an epoch is compared with; before, the mean of the last epoch is."""


class Guard:
    """Judges the loss of each step, before the step changes the weights.

    Args:
        config: of the loop.
        step: the step function, which may say what it trained.
        title: of messages.
    """

    def __init__(self, config: LoopConfig, step: StepFunction, title: str) -> None:
        self._config, self._step, self._title = config, step, title
        self._warned = -1

    def check(self, loss: float, usual: float | None, at: tuple[int, int], checkpoint: Path | None) -> None:
        """Refuses a loss that is not finite or that spikes, and warns of a suspicious one, once in each epoch.

        Args:
            loss: of the step.
            usual: mean loss of the steps before; None where there are too few.
            at: epoch and step in the epoch, from 0.
            checkpoint: from which the training can go on; None where there is none.

        Raises:
            TrainingError: the loss is no finite number, or exceeds ``config.spike`` times the usual one.
        """
        where = f"in epoch {at[0] + 1}, step {at[1] + 1}"
        if not math.isfinite(loss):
            raise TrainingError(self._complaint(f"the loss became {loss} {where}", checkpoint))
        if usual is None or usual <= 0:
            return
        said = f"the loss jumped from {usual:.4g} to {loss:.4g} {where}"
        if self._config.spike and loss > self._config.spike * usual:
            raise TrainingError(self._complaint(said, checkpoint))
        if loss > SUSPICIOUS * usual and self._warned != at[0]:
            self._warned = at[0]
            logger.warning(
                "%s: %s%s; a single jump is harmless, and where there are many, lower lr",
                *(self._title, said, self._trained()),
            )

    def _trained(self) -> str:
        what = description(self._step)
        return f" ({what})" if what else ""

    def _complaint(self, said: str, checkpoint: Path | None) -> str:
        remedy = f"lower lr (now {self._config.lr}) or set gradient_norm"
        if checkpoint is not None:
            remedy += f"; with resume_from: {checkpoint} the training goes on from the checkpoint before"
        return f"{self._title}: {said}{self._trained()}; {remedy}"


def usual_loss(loss_sum: float, steps: int, last_epoch: float | None) -> float | None:
    """Mean loss of an epoch's steps so far, or that of the epoch before where the steps are too few."""
    return loss_sum / steps if steps >= ENOUGH else last_epoch
