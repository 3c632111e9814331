"""The best objective at every limit of one swept constraint, the other swept one at a fixed limit: a step function.

The answer at the upper end of an interval of limits decides the part from what its SubNet spends up to the end: nothing
is better there. The part below is cut in halves, and the interval with the largest gap follows: the objective at its
upper end minus the best objective of the SubNets that its lower end allows. Where no interval is left, every step is
known.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass

import numpy as np

from autotailor.ir.space.metric import FloatArray
from autotailor.search.constrained.answers import Answers


@dataclass(frozen=True)
class Interval:
    """Limits of the first swept constraint, from ``low`` up to what an answer spends, for which the best is not known.

    Attributes:
        low: the lower end.
        number: of the answer; no SubNet below is better than it.
    """

    low: float
    number: int


@dataclass(frozen=True, eq=False)
class Line:
    """A step function of the limit of the first swept constraint.

    Attributes:
        rest: the limits of the other swept constraints.
        asked: limits that were asked for, rising, to the number of the answer; None where no SubNet keeps the limit.
        open: the intervals that are not decided.
    """

    rest: FloatArray
    asked: dict[float, int | None]
    open: tuple[Interval, ...]

    def gap(self, answers: Answers) -> float:
        """By how much the best objective exceeds that of all answers, at most, at any limit that an answer keeps."""
        return max((self._gap(answers, interval) for interval in self.open), default=0.0)

    def _gap(self, answers: Answers, interval: Interval) -> float:
        end = answers.spent[interval.number, 0] - answers.apart[0]
        below = answers.within(np.array([interval.low, *self.rest]))
        inside = answers.within(np.array([end, *self.rest]))
        if not inside.any():
            return 0.0  # the answer itself is the first that keeps a limit of the interval
        lower = answers.linear[below].max() if below.any() else answers.linear[inside].min()
        return answers.difference(lower, answers.found[interval.number].bound)


def trace(answers: Answers, rest: FloatArray, points: int) -> Line:
    """The line at limits ``[swept - 1]`` of the other swept constraints, from about ``points`` limits of the first."""
    return _Tracer(answers, rest).run(points)


class _Tracer:
    """Cuts intervals until none is left, or until it has asked often enough."""

    def __init__(self, answers: Answers, rest: FloatArray) -> None:
        self.answers, self.rest = answers, rest
        self.asked: dict[float, int | None] = {}
        self.heap: list[tuple[float, int, Interval]] = []
        self.order = itertools.count()

    def run(self, points: int) -> Line:
        answers = self.answers
        self._open(float(answers.least[0]), float(answers.highest[0]))
        while self.heap and len(self.asked) < points:
            _, _, interval = heapq.heappop(self.heap)
            high = float(answers.spent[interval.number, 0] - answers.apart[0])
            if high > interval.low:
                middle = (interval.low + high) / 2
                self._open(interval.low, middle)
                self._open(middle, high)
        return Line(self.rest, dict(sorted(self.asked.items())), tuple(interval for _, _, interval in self.heap))

    def _open(self, low: float, high: float) -> None:
        """Asks for the upper end of an interval, and puts the interval among the open ones."""
        number = self.asked[high] = self.answers.at(np.array([high, *self.rest]))
        if number is not None:
            interval = Interval(low, number)
            heapq.heappush(self.heap, (-self._urgency(interval), next(self.order), interval))

    def _urgency(self, interval: Interval) -> float:
        """By how much the upper end of an interval is better than the lower end, as far as it is known.

        Where no SubNet is known at the lower end, the worst one of the space takes its place, so that the lowest limits
        that can be kept are found first.
        """
        answers = self.answers
        below = answers.within(np.array([interval.low, *self.rest]))
        lower = answers.linear[below].max() if below.any() else answers.worst
        return answers.difference(lower, answers.found[interval.number].bound)
