"""The front of an objective and one or two swept constraints, under limits of further constraints.

For one swept constraint the front is the steps of one line (``Line``). For two, it is those of several lines, at
*levels* of the second constraint: first some levels that are spread evenly, then the middle of the two neighbours
between which the objective changes most. Each SubNet of a line is the best within what it spends, so that only SubNets
between levels can be missing. The largest difference between neighbouring lines bounds what the front misses there.

A line is the best objective at every limit of one swept constraint, the other one at a fixed limit: a step function.
The answer at the upper end of an interval of limits decides the part from what its SubNet spends up to the end: nothing
is better there. The part below is cut in halves, and the interval with the largest gap follows: the objective at its
upper end minus the best objective of the SubNets that its lower end allows. Where no interval is left, every step is
known.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.metric import FloatArray, Metric
from autotailor.ir.space.subnet import IntArray
from autotailor.search.config import SearchError
from autotailor.search.constrained.answers import APART, Answers
from autotailor.search.constrained.program import Amount, Constraint
from autotailor.search.constrained.solve import check, limits_of
from autotailor.search.constrained.solver import Solver


@dataclass(frozen=True, eq=False)
class ConstrainedFront:
    """A front of an objective and one or two constraints, under further constraints.

    Attributes:
        rows: choice indices ``[n, variables]`` of SubNets that no other one of them beats, by rising first constraint.
        values: of the objective ``[n]``, in its unit.
        spent: values of the swept constraints ``[n, swept]``.
        proven: whether no SubNet that spends as little has a higher objective ``[n]``; all are in time enough.
        levels: of the second constraint at which the front was searched; empty with one constraint.
        gap: at any limit of the first constraint, and at each of these levels of the second, that some SubNet of the
            front keeps, the front has a SubNet whose objective is less than the best by no more than this, in its unit.
        gap_between: the same at any limits; equal to ``gap`` with one constraint.
    """

    rows: IntArray
    values: FloatArray
    spent: FloatArray
    proven: npt.NDArray[np.bool_]
    levels: tuple[float, ...]
    gap: float
    gap_between: float


def constrained_front(
    objective: Metric,
    axes: Sequence[Constraint],
    constraints: Sequence[Constraint] = (),
    budgets: Mapping[str, Amount] | None = None,
    *,
    points: int = 64,
    levels: int = 24,
    seconds: float = 30.0,
    max_table: int = 200_000,
) -> ConstrainedFront | None:
    """The SubNets that no other one beats in the objective and one or two costs, within budgets.

    >>> constrained_front(accuracy, [Constraint(latency), Constraint(memory)], [Constraint(energy)], {"energy": "50%"})

    Args:
        objective: to be maximised, a sum of terms, perhaps through a link.
        axes: one or two costs, to be minimised.
        constraints: further metrics with a budget.
        budgets: of axes and constraints by name, as in ``solve``.
        points: limits of the first cost that are tried, at each level of the second.
        levels: limits of the second cost that are tried, 2 at least.
        seconds: of CPU, for each set of limits at most; a set takes some hundredths of a second as a rule.
        max_table: largest table of an elimination, in entries.

    Returns:
        The front; None where no SubNet was found within the budgets.

    Raises:
        SearchError: there are other than one or two axes, a budget or its name is invalid, or the terms couple too many
            variables.
    """
    every, named = [*axes, *constraints], budgets or {}
    check(objective, every, [named])
    if len(axes) not in (1, 2):
        raise SearchError(f"front over {len(axes)} costs, expected one or two beside {objective.name}")
    solver = Solver(objective, every, seconds, 0.0, max_table)
    return sweep(solver, limits_of(every, named), len(axes), points, levels)


def sweep(solver: Solver, limits: FloatArray, axes: int, points: int, levels: int) -> ConstrainedFront | None:
    """The front of the solver's objective and its first constraints, one or two; see ``constrained_front``.

    Args:
        solver: of the objective and all constraints.
        limits: of all constraints ``[constraints]``, infinite without.
        axes: so many of the constraints the front is over.
        points: limits of the first constraint, at each level of the second.
        levels: limits of the second constraint.
    """
    answers = Answers(solver, limits, range(axes))
    lines = [trace(answers, np.empty(0), points)] if axes == 1 else _lines(answers, points, levels)
    if not answers.bests:
        return None
    gap = max(line.gap(answers) for line in lines)
    between = [_between(answers, below, above) for below, above in itertools.pairwise(lines)]
    kept = _non_dominated(answers)
    proven = np.array([best.bound <= best.linear for best in answers.bests])
    return ConstrainedFront(
        np.stack([best.row for best in answers.bests])[kept],
        solver.objective.link.value(answers.linear[kept]),
        answers.spent[kept],
        proven[kept],
        tuple(float(line.rest[0]) for line in lines if len(line.rest)),
        gap,
        max([gap, *between]),
    )


def _lines(answers: Answers, points: int, levels: int) -> list[Line]:
    """Lines by rising level of the second constraint, the loosest first to be traced."""
    evenly = np.linspace(answers.least[1], answers.highest[1], max(2, levels // 2))
    lines = [trace(answers, np.array([level]), points) for level in evenly[::-1]][::-1]
    while len(lines) < levels:
        gaps = [_between(answers, below, above) for below, above in itertools.pairwise(lines)]
        widest = int(np.argmax(gaps))
        below, above = lines[widest], lines[widest + 1]
        top = max((answers.spent[n, 1] for n in above.answered.values() if n is not None), default=-np.inf)
        if gaps[widest] == 0.0 or top <= below.rest[0] + 2 * answers.apart[1]:
            break
        level = (below.rest[0] + top) / 2
        lines.insert(widest + 1, trace(answers, np.array([level]), points))
    return lines


def _between(answers: Answers, below: Line, above: Line) -> float:
    """By how much the objective may change between two levels, at any limit of the first constraint that is kept.

    Between two limits that were asked for at either level, the best objective of the upper level is at most that at the
    next limit asked for there, and the front has what the lower level allows at the first of the two limits.
    """
    ends, numbers = np.array(list(above.answered)), list(above.answered.values())
    limits = np.union1d(ends, list(below.answered))
    worst, start = 0.0, float(answers.least[0])
    for limit in limits[limits <= ends[-1]]:
        number = numbers[int(np.searchsorted(ends, limit))]
        inside = answers.within(np.array([limit, above.rest[0]]))
        if number is not None and inside.any():
            allowed = answers.within(np.array([start, below.rest[0]]) + answers.apart)
            lower = answers.linear[allowed].max() if allowed.any() else answers.linear[inside].min()
            worst = max(worst, answers.difference(lower, answers.bests[number].bound))
        start = limit
    return worst


def _non_dominated(answers: Answers) -> IntArray:
    """Numbers of the answers that no other one beats, by rising first constraint; of equal ones the first."""
    costs = np.column_stack([answers.spent, -answers.linear])
    tolerance = np.append(answers.apart, APART * answers.solver.program.range_of_loss)
    kept = []
    for number, own in enumerate(costs):
        as_good = (costs <= own + tolerance).all(axis=1)
        better = as_good & (costs < own - tolerance).any(axis=1)
        if not better.any() and not as_good[:number].any():
            kept.append(number)
    return np.array(sorted(kept, key=lambda number: tuple(costs[number])), dtype=np.int64)


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
        answered: limits that were asked for, rising, to the number of the answer; None where no SubNet keeps the limit.
        open: the intervals that are not decided.
    """

    rest: FloatArray
    answered: dict[float, int | None]
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
        return answers.difference(lower, answers.bests[interval.number].bound)


def trace(answers: Answers, rest: FloatArray, points: int) -> Line:
    """The line at limits ``[swept - 1]`` of the other swept constraints, from about ``points`` limits of the first."""
    return _Tracer(answers, rest).run(points)


class _Tracer:
    """Cuts intervals until none is left, or until it has asked often enough."""

    def __init__(self, answers: Answers, rest: FloatArray) -> None:
        self.answers, self.rest = answers, rest
        self.answered: dict[float, int | None] = {}
        self.heap: list[tuple[float, int, Interval]] = []
        self.order = itertools.count()

    def run(self, points: int) -> Line:
        answers = self.answers
        self._open(float(answers.least[0]), float(answers.highest[0]))
        while self.heap and len(self.answered) < points:
            _, _, interval = heapq.heappop(self.heap)
            high = float(answers.spent[interval.number, 0] - answers.apart[0])
            if high > interval.low:
                middle = (interval.low + high) / 2
                self._open(interval.low, middle)
                self._open(middle, high)
        return Line(self.rest, dict(sorted(self.answered.items())), tuple(interval for _, _, interval in self.heap))

    def _open(self, low: float, high: float) -> None:
        """Asks for the upper end of an interval, and puts the interval among the open ones."""
        number = self.answered[high] = self.answers.at(np.array([high, *self.rest]))
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
        return answers.difference(lower, answers.bests[interval.number].bound)
