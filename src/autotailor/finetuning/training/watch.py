"""What looks at a training while it runs; the result of the training does not depend on it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import nn

Record = Callable[[Mapping[str, float], int], None]
"""Takes the metrics of an epoch and the number of the epoch, from 0."""


def no_record(metrics: Mapping[str, float], epoch: int) -> None:
    """A record that keeps nothing."""


def behind(record: Record, epochs: int) -> Record:
    """A record of a training that comes behind others of so many epochs."""
    return lambda metrics, epoch: record(metrics, epoch + epochs)


@dataclass(frozen=True)
class Accuracies:
    """Accuracies of a network in training, percent.

    Attributes:
        columns: accuracies by their column of the history.
        shown: short name of each accuracy that the console shows, and its column.
        score: the accuracy by which the best state of the training is chosen.
    """

    columns: Mapping[str, float]
    shown: Mapping[str, str]
    score: float

    def __str__(self) -> str:
        return ", ".join(f"{name} {self.columns[column]:.1f} %" for name, column in self.shown.items())


@dataclass(frozen=True)
class Watch:
    """What the loop of training calls after an epoch.

    Attributes:
        measure: accuracies of the module as it is now; None measures nothing. It may change the module's mode, and
            neither its weights nor its active SubNet.
        every: epochs between two measurements; the first and the last epoch are measured, too. 0 measures nothing.
        record: takes the metrics of each epoch. After an interruption it takes those of the earlier epochs again.
        keeps_best: whether the training ends in the state with the highest score, instead of in its last state.
        is_over: whether the training ends now, before its time; asked between epochs, and answered from what ``record``
            was given, so that a resumed training ends where it would have ended.
    """

    measure: Callable[[nn.Module], Accuracies] | None = None
    every: int = 0
    record: Record = field(default=no_record)
    keeps_best: bool = False
    is_over: Callable[[], bool] = field(default=lambda: False)

    def accuracies(self, module: nn.Module, epoch: int, epochs: int) -> Accuracies | None:
        """Accuracies after an epoch (from 0); None where this epoch is not measured."""
        if self.measure is None or not self.every:
            return None
        is_due = (epoch + 1) % self.every == 0 or epoch in (0, epochs - 1)
        return self.measure(module) if is_due else None
