"""The best SubNets under any set of constraints at once, for many budgets in one call."""

from collections.abc import Mapping, Sequence

import numpy as np

from autotailor.ir.space.link import IDENTITY
from autotailor.ir.space.metric import FloatArray, Metric
from autotailor.ir.space.subnet import SubNet, largest
from autotailor.search.budgets import read_budget
from autotailor.search.config import SearchError
from autotailor.search.constrained.program import Amount, Constraint, Solution
from autotailor.search.constrained.solver import Best, Solver


def solve(
    objective: Metric,
    constraints: Sequence[Constraint],
    budgets: Sequence[Mapping[str, Amount]],
    *,
    seconds: float = 30.0,
    gap: float = 0.0,
    max_table: int = 200_000,
) -> tuple[Solution, ...]:
    """The SubNet with the highest objective for each set of budgets.

    The budgets' multipliers are found by column generation (``relaxation``), and branch and bound (``branches``) proves
    the best SubNet. SubNets that were met for one set of budgets help with the next.

    >>> solve(accuracy, [Constraint(latency), Constraint(memory)], [{"latency": "30/s", "peak_memory": 64.0}])

    Args:
        objective: to be maximised, a sum of terms, perhaps through a link.
        constraints: metrics with an upper limit, over the objective's space; one device's or several devices'.
        budgets: name of each constraint to a number in the unit of its metric, a share of the largest SubNet's value
            (``"50%"``), or a throughput (``"30/s"``, for latencies). A constraint that is left out has no limit.
        seconds: of CPU, for each set of budgets; where they are over, the best SubNet so far is answered with its gap.
        gap: that is good enough, in the objective's unit; 0 for the best SubNet.
        max_table: largest table of an elimination, in entries.

    Returns:
        A solution for each set of budgets. Where no SubNet keeps the budgets, its ``raised`` is above 1.

    Raises:
        SearchError: a budget or its name is invalid, or the terms couple too many variables.
    """
    check(objective, constraints, budgets)
    solver = Solver(objective, constraints, seconds, gap, max_table)
    return tuple(solution(objective, constraints, solver.best(limits_of(constraints, named))) for named in budgets)


def limits_of(constraints: Sequence[Constraint], named: Mapping[str, Amount]) -> FloatArray:
    """A set of budgets in the metrics' units ``[constraints]``; infinite for constraints without a budget."""

    def limit(constraint: Constraint) -> float:
        metric = constraint.metric
        if constraint.key not in named:
            return float("inf")
        whole = float(metric.predict(largest(metric.space).to_array())[0])
        return read_budget(named[constraint.key], whole, metric.unit)

    return np.array([limit(constraint) for constraint in constraints])


def solution(objective: Metric, constraints: Sequence[Constraint], best: Best) -> Solution:
    """An answer of the solver in the metrics' units."""
    names, row = [c.key for c in constraints], best.row[None]
    value, bound = objective.link.value(np.array([best.linear, max(best.linear, best.bound)]))
    return Solution(
        SubNet.from_array(objective.space, best.row),
        float(value),
        float(bound),
        dict(zip(names, best.limits.tolist(), strict=True)),
        {c.key: float(c.metric.predict(row)[0]) for c in constraints},
        1.0 + best.raised,
        1.0 + best.raised_bound,
    )


def check(objective: Metric, constraints: Sequence[Constraint], budgets: Sequence[Mapping[str, Amount]]) -> None:
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
