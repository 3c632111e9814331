"""Whether SubNets in training have become worse than they began, on the same held-out images.

A SubNet has become worse where its loss is higher than at its beginning, beyond chance, and no more images are right:
one that is only surer of itself is not. It stops where what it has lost is not coming back in time, at the pace since
the check before. The first half of a training decides nothing, because its rate is high and a good training loses there
as well.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from torch import nn

from autotailor.accuracy.determinism import deterministic
from autotailor.accuracy.evaluation import outcome_of, percent
from autotailor.compute.placement import device_of
from autotailor.data.excerpt import excerpt
from autotailor.data.splits import DataSplits
from autotailor.finetuning.polishing.config import CHECKED, PolishConfig
from autotailor.finetuning.polishing.lockstep import Lockstep
from autotailor.finetuning.training.watch import Accuracies, Watch
from autotailor.prediction.evaluations.chance import CLEAR
from autotailor.prediction.evaluations.outcome import Outcome
from autotailor.statistics import clustered_mean

logger = logging.getLogger(__name__)
FREE = 0.5
"""Share of a training that decides nothing: a loss that ended a third lower was a half higher after a quarter."""
FASTER = 2.0
"""How much faster than since the check before a loss may fall in what is left, where the learning rate goes to 0."""


class Beginning:
    """Losses of SubNets before their training, with which their losses are compared in it.

    Args:
        students: SubNets, before the training.
        names: of the SubNets, for messages.
        resolutions: sides of their images in pixels; 0 leaves the size of the data.
        data: whose validation set is looked at.
        config: of the round, with its number of parts as ``epochs``.
        step: of the training, in which SubNets are stopped.
    """

    def __init__(
        self,
        students: Sequence[nn.Module],
        names: Sequence[str],
        resolutions: Sequence[int],
        data: DataSplits,
        config: PolishConfig,
        step: Lockstep,
    ) -> None:
        self._names, self._resolutions, self._config, self._step = names, resolutions, config, step
        self._images = excerpt(data.validation, CHECKED)
        self._before = [self._outcome(student, number) for number, student in enumerate(students)]
        self._last: dict[int, float] = {}
        self.lost: set[int] = set()

    @property
    def watch(self) -> Watch:
        """Looks at the training, and ends it where no SubNet goes on."""
        every = max(1, self._config.epochs // self._config.checks)
        return Watch(self._measure, every, self._record, is_over=lambda: len(self._step.stopped) == len(self._names))

    def _measure(self, modules: nn.Module) -> Accuracies:
        """How much higher each loss and accuracy are than at the beginning: ``change_0``, its error, and ``gain_0``."""
        columns: dict[str, float] = {}
        accuracies = []
        for number, student in enumerate(modules.children()):
            now = self._outcome(student, number)
            change, error = self._change(now.losses, number)
            accuracies.append(percent(now.values))
            gain = accuracies[-1] - percent(self._before[number].values)
            columns |= {f"change_{number}": change, f"error_{number}": error, f"gain_{number}": gain}
        columns["accuracy"] = float(np.mean(accuracies))
        return Accuracies(columns, {"mean of the SubNets": "accuracy"}, columns["accuracy"])

    def _change(self, losses: npt.NDArray[np.float32], number: int) -> tuple[float, float]:
        change = losses.astype(np.float64) - self._before[number].losses
        return clustered_mean(change, self._images.groups)

    def _record(self, row: Mapping[str, float], epoch: int) -> None:
        """Stops SubNets that have become worse; ``lost`` are those that are worse now."""
        if "change_0" not in row:
            return
        done = (epoch + 1) / self._config.epochs
        for number in range(len(self._names)):
            change, error = row[f"change_{number}"], row[f"error_{number}"]
            is_worse = change > CLEAR * error and row[f"gain_{number}"] <= 0
            (self.lost.add if is_worse else self.lost.discard)(number)
            left = (1 - done) * self._config.checks
            comes_back = FASTER * left * (self._last.get(number, change) - change) > change
            if number not in self._step.stopped and is_worse and FREE < done < 1 and not comes_back:
                self._step.stopped.add(number)
                logger.warning(
                    "polish: SubNet %s stops after %.0f %% of its training, which makes it worse: its loss on the "
                    "validation images is %.3f above that of its beginning (standard error %.3f); lower polish.rates",
                    *(self._names[number], 100 * done, change, error),
                )
            self._last[number] = change

    def _outcome(self, student: nn.Module, number: int) -> Outcome:
        with deterministic(self._config.threads, device_of(student)):
            return outcome_of(student.eval(), self._images, self._resolutions[number], self._config.batch_size)
