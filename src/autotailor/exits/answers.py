"""What exits say of pictures, and what it costs to get there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from autotailor.ir.errors import AutoTailorError

Floats = npt.NDArray[np.float64]
CONFIDENCES = ("probability", "margin")
"""How sure an exit is: the largest probability, or how far the largest is above the second."""

LAST = "last"
"""What the network's own answer is called among its exits."""


class ExitError(AutoTailorError):
    """Exits cannot be made, or thresholds cannot be chosen."""


@dataclass(frozen=True, eq=False)
class Answers:
    """How sure each exit is of each picture, and how right.

    Attributes:
        confidence: of each exit but the last, ``[n, exits]``; a picture leaves where it is at least the threshold.
        right: how right each exit is, the last one included, 0 to 1: ``[n, exits + 1]``.
    """

    confidence: Floats
    right: Floats

    def __post_init__(self) -> None:
        pictures, exits = self.confidence.shape
        if self.right.shape != (pictures, exits + 1):
            raise ExitError(
                f"expected how right {exits + 1} exits are about {pictures} pictures, not {self.right.shape}"
            )

    def __len__(self) -> int:
        return len(self.right)

    def of(self, pictures: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> Answers:
        """The answers about some of the pictures."""
        return Answers(self.confidence[pictures], self.right[pictures])

    def only(self, exits: Iterable[int]) -> Answers:
        """The answers of some of the exits and of the last one."""
        kept = list(exits)
        return Answers(self.confidence[:, kept], self.right[:, [*kept, -1]])


@dataclass(frozen=True)
class Costs:
    """What parts of a network with exits cost, in ms or in another unit of budgets.

    Attributes:
        segments: from the input to the first exit, from there to the second, and so on to the network's end.
        heads: of each exit but the last, whose head belongs to the last segment.
    """

    segments: tuple[float, ...]
    heads: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.segments) != len(self.heads) + 1:
            raise ExitError(f"{len(self.heads)} heads stand between as many segments and one, not {len(self.segments)}")

    @property
    def whole(self) -> float:
        """The cost of the network without exits."""
        return sum(self.segments)

    def reach(self, present: Iterable[bool]) -> Floats:
        """Costs of the answers of each exit and of the last one, with only some of the exits there: ``[exits + 1]``."""
        heads = [cost if there else 0.0 for cost, there in zip(self.heads, present, strict=True)]
        return np.asarray(np.cumsum(self.segments) + np.cumsum([*heads, 0.0]))

    def only(self, exits: Iterable[int]) -> Costs:
        """The costs with some of the exits alone."""
        kept = list(exits)
        groups = np.split(np.array(self.segments), np.array(kept, dtype=int) + 1)
        return Costs(tuple(float(group.sum()) for group in groups), tuple(self.heads[e] for e in kept))


@dataclass(frozen=True)
class Policy:
    """Thresholds of exits, and what they are worth on the pictures on which they were chosen.

    Attributes:
        thresholds: of each exit but the last; None: the exit is not there, 0: every picture leaves that gets there.
        accuracy: mean of how right the answers are, 0 to 1.
        expected: mean cost of a picture.
        spread: standard deviation of the cost of a picture.
        worst: cost of the picture that goes furthest.
    """

    thresholds: tuple[float | None, ...]
    accuracy: float
    expected: float
    spread: float
    worst: float

    @property
    def present(self) -> tuple[bool, ...]:
        """Whether each exit is there."""
        return tuple(threshold is not None for threshold in self.thresholds)

    @cached_property
    def limits(self) -> Floats:
        """The thresholds with infinity where an exit is not there, and 0 of the last exit: ``[exits + 1]``."""
        return np.array([*(np.inf if each is None else each for each in self.thresholds), 0.0])

    def leave(self, confidence: Floats) -> npt.NDArray[np.intp]:
        """The exit at which each picture leaves: ``[n, exits]`` to ``[n]``, 0 for the first."""
        sure = np.concatenate([confidence, np.ones((len(confidence), 1))], axis=1) >= self.limits
        return np.asarray(np.argmax(sure, axis=1))

    def right(self, answers: Answers) -> Floats:
        """How right the answer to each picture is: ``[n]``."""
        return np.asarray(answers.right[np.arange(len(answers)), self.leave(answers.confidence)])

    def paid(self, answers: Answers, costs: Costs) -> Floats:
        """What each picture costs: ``[n]``."""
        return np.asarray(costs.reach(self.present)[self.leave(answers.confidence)])

    def furthest(self, costs: Costs) -> float:
        """What the picture costs that goes furthest."""
        return float(costs.reach(self.present)[np.argmax(self.limits == 0.0)])

    def on(self, answers: Answers, costs: Costs) -> Policy:
        """The same thresholds with what they are worth on other pictures."""
        paid = self.paid(answers, costs)
        accuracy, expected, spread = self.right(answers).mean(), paid.mean(), paid.std()
        return replace(self, accuracy=float(accuracy), expected=float(expected), spread=float(spread))
