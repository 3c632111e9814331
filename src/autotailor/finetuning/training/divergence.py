"""Losses that are no longer finite, or that are far above those of comparable steps before.

SubNets of one training have different losses: where the largest has learnt a small data set by heart, a small SubNet's
loss may be many times the mean of the epoch, and nothing is wrong. A loss is therefore compared with earlier steps that
trained the same kind of SubNets, and with the high losses among these, because SubNets of one kind differ as well.
"""

import logging
import math
from collections import defaultdict, deque
from collections.abc import Hashable
from itertools import chain
from pathlib import Path

from autotailor.compute.accelerator import resolve
from autotailor.finetuning.errors import DivergenceError
from autotailor.finetuning.training.config import LoopConfig
from autotailor.finetuning.training.precision import resolve as resolve_precision
from autotailor.finetuning.training.steps import StepFunction, description, kind

logger = logging.getLogger(__name__)
SUSPICIOUS = 5.0
"""Ratio of a loss to the usual one from which a warning names the step."""
ENOUGH = 16
"""Steps from which losses are compared with."""
WINDOW = 64
"""The last steps of a kind that are compared with."""
HIGH = 0.9
"""Share of the comparable steps whose loss is at most the usual one."""


class Guard:
    """Judges the loss of each step, before the step changes the weights.

    It remembers losses from the beginning of this process on, and judges none before it knows ``ENOUGH``.

    Args:
        config: of the loop.
        step: the step function, which may say what it trained.
        title: of messages.
    """

    def __init__(self, config: LoopConfig, step: StepFunction, title: str) -> None:
        self._config, self._step, self._title = config, step, title
        self._losses: dict[Hashable, deque[float]] = defaultdict(lambda: deque(maxlen=WINDOW))
        self._warned = -1

    def check(self, loss: float, at: tuple[int, int], checkpoint: Path | None) -> None:
        """Refuses a loss that is not finite or that spikes, and warns of a suspicious one, once in each epoch.

        Args:
            loss: of the step, the mean over all processes that train together.
            at: epoch and step in the epoch, from 0.
            checkpoint: from which the training can go on; None where there is none.

        Raises:
            DivergenceError: the loss is no finite number, or exceeds ``config.spike`` times the usual one.
        """
        where = f"in epoch {at[0] + 1}, step {at[1] + 1}"
        if not math.isfinite(loss):
            raise self._complaint(f"the loss became {loss} {where}", checkpoint)
        usual = self._usual()
        self._losses[kind(self._step)].append(loss)
        if usual is None or usual <= 0:
            return
        said = f"the loss jumped from {usual:.4g} to {loss:.4g} {where}"
        if self._config.spike and loss > self._config.spike * usual:
            raise self._complaint(said, checkpoint)
        if loss > SUSPICIOUS * usual and self._warned != at[0]:
            self._warned = at[0]
            logger.warning(
                "%s: %s%s; a single jump is harmless, and where there are many, lower lr",
                *(self._title, said, self._trained()),
            )

    def _usual(self) -> float | None:
        """A high loss among the last steps of this step's kind, or the highest of all kinds where these are too few."""
        alike = sorted(self._losses[kind(self._step)])
        if len(alike) >= ENOUGH:
            return alike[math.ceil(HIGH * len(alike)) - 1]
        losses = list(chain.from_iterable(self._losses.values()))
        return max(losses) if len(losses) >= ENOUGH else None

    def _trained(self) -> str:
        what = description(self._step)
        return f" ({what})" if what else ""

    def _complaint(self, said: str, checkpoint: Path | None) -> DivergenceError:
        remedy = f"lower lr (now {self._config.lr}) or set gradient_norm{remedy_of_precision(self._config)}"
        if checkpoint is not None:
            remedy += f"; with resume_from: {checkpoint} the training goes on from the checkpoint before"
        return DivergenceError(f"{self._title}: {said}{self._trained()}", remedy)


def remedy_of_precision(config: LoopConfig) -> str:
    """The end of a remedy where a loss may have been too large for float16; "" for other precisions."""
    if resolve_precision(config.precision, resolve(config.accelerator).type) != "fp16":
        return ""
    return ", or set precision to fp32, because float16 holds no number above 65504"
