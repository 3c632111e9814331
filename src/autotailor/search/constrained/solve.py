"""The best SubNets under any set of constraints at once, for many budgets in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from autotailor.ir.space.link import IDENTITY
from autotailor.ir.space.metric import FloatArray, Metric
from autotailor.ir.space.subnet import IntArray, SubNet, largest, smallest
from autotailor.search.budgets import read_budget
from autotailor.search.constrained.constraint import Budget, Constraint, Solution
from autotailor.search.constrained.program import Program
from autotailor.search.errors import SearchError

WITHIN = 1e-6
"""A prediction may exceed its budget by this share: the tolerance of HiGHS."""


def solve(
    objective: Metric,
    constraints: Sequence[Constraint],
    budgets: Sequence[Mapping[str, Budget]],
    *,
    seconds: float = 30.0,
    gap: float = 0.0,
    max_table: int = 200_000,
) -> tuple[Solution, ...]:
    """The SubNet with the highest objective for each set of budgets (see ``program`` for the method).

    >>> solve(accuracy, [Constraint(latency), Constraint(memory)], [{"latency": "30/s", "peak_memory": 64.0}])

    Args:
        objective: to be maximised, a sum of terms, perhaps through a link.
        constraints: metrics with an upper limit, over the objective's space; one device's or several devices'.
        budgets: name of each constraint to a number in the unit of its metric, a share of the largest SubNet's value
            (``"50%"``), or a throughput (``"30/s"``, for latencies). A constraint that is left out has no limit.
        seconds: for each set of budgets; where the time is over, the best SubNet so far is answered with its gap.
        gap: relative gap that is good enough; 0 for the best SubNet.
        max_table: largest table of an elimination, in entries.

    Returns:
        A solution for each set of budgets. Where no SubNet keeps the budgets, its ``raised`` is above 1.

    Raises:
        SearchError: a budget or its name is invalid, the terms couple too many variables, or the time was too short to
            find any SubNet.
    """
    _check(objective, constraints, budgets)
    solver = _Solver(objective, constraints, Program(objective, constraints, max_table), seconds, gap)
    return tuple(solver.solution(solver.limits(named)) for named in budgets)


def _check(objective: Metric, constraints: Sequence[Constraint], budgets: Sequence[Mapping[str, Budget]]) -> None:
    """Refuses constraints over other spaces, names that occur twice, and budgets of unknown names."""
    names = [c.key for c in constraints]
    if not constraints or len(set(names)) != len(names):
        raise SearchError(f"constraints {names}: expected one at least, and distinct names; give each a name")
    for constraint in constraints:
        if constraint.metric.space != objective.space:
            raise SearchError(f"constraint {constraint.key} is over another space than {objective.name}")
        if isinstance(constraint.metric, Metric) and constraint.metric.link != IDENTITY:
            raise SearchError(f"constraint {constraint.key}: expected a metric without a link; constrain the sum")
    for named in budgets:
        if unknown := sorted(set(named) - set(names)):
            raise SearchError(f"budgets name {', '.join(unknown)}, expected some of {', '.join(names)}")


class _Solver:
    """Answers one set of budgets after another, and remembers the SubNets that were found."""

    def __init__(
        self, objective: Metric, constraints: Sequence[Constraint], program: Program, seconds: float, gap: float
    ) -> None:
        self.objective, self.constraints, self.program = objective, constraints, program
        self.seconds, self.gap = seconds, gap
        space = objective.space
        self.whole = self.spent(largest(space).to_array()[None])[0]
        self.known: list[IntArray] = [largest(space).to_array(), smallest(space).to_array()]

    def spent(self, rows: IntArray) -> FloatArray:
        """Values of all constraints ``[n, constraints]`` for choice indices ``[n, variables]``."""
        return np.stack([c.metric.predict(rows) for c in self.constraints], axis=1)

    def limits(self, named: Mapping[str, Budget]) -> FloatArray:
        """A set of budgets in the metrics' units; constraints without a budget get one that every SubNet keeps."""
        rows = zip(self.constraints, self.whole, strict=True)
        return np.array(
            [read_budget(named[c.key], v, c.metric.unit) if c.key in named else 1e3 * abs(v) + 1.0 for c, v in rows]
        )

    def solution(self, limits: FloatArray) -> Solution:
        """The best SubNet within limits ``[constraints]``, or within the nearest limits that can be kept."""
        answer, raised = self.program.answer(limits, self.seconds, self.gap), 1.0
        if answer.row is None and np.isinf(answer.bound) and answer.bound > 0:
            raised = self._raised(limits)
            limits = limits * raised
            answer = self.program.answer(limits, self.seconds, self.gap)
        if answer.row is not None:
            self.known.append(answer.row)
        row = self._best(limits)
        linear = float(self.objective.linear(row)[0])
        return Solution(
            SubNet.from_array(self.objective.space, row),
            float(self.objective.predict(row)[0]),
            self._bound(answer.bound, linear),
            self._named(limits),
            self._named(self.spent(row[None])[0]),
            raised,
        )

    def _raised(self, limits: FloatArray) -> float:
        """The least factor of the limits that a SubNet keeps."""
        answer = self.program.nearest(limits, self.seconds)
        if answer.row is not None:
            self.known.append(answer.row)
        factors = (self.spent(np.stack(self.known)) / limits).max(axis=1)
        return float(factors.min()) * (1 + 1e-12)

    def _best(self, limits: FloatArray) -> IntArray:
        """The best SubNet of all that are known."""
        rows = np.stack(self.known)
        kept = rows[(self.spent(rows) <= limits * (1 + WITHIN)).all(axis=1)]
        if not len(kept):
            raise SearchError(
                f"no SubNet within {self._named(limits)} was found in {self.seconds:g} s; allow more seconds"
            )
        return np.asarray(kept[int(np.argmax(self.objective.linear(kept)))])

    def _bound(self, lower: float, linear: float) -> float:
        """The bound of the objective in its unit, from HiGHS's bound of the loss; never below the SubNet found."""
        if not np.isfinite(lower):
            return float("inf")
        highest = max(linear, self.program.objective_constant - lower)
        return float(self.objective.link.value(np.array([highest]))[0])

    def _named(self, values: FloatArray) -> dict[str, float]:
        return {c.key: float(v) for c, v in zip(self.constraints, values, strict=True)}
