"""The mixed-integer linear program of a space: one number between 0 and 1 for each entry of each clique.

With y_e the weight of entry e, loss l_e, and costs c_ie of constraint i,

    minimise    sum_e l_e y_e
    such that   the weights of a clique sum up to 1 (cliques without a parent),
                a clique and its parent give the same weights to each assignment of their separator,
                sum_e c_ie y_e + m_i <= b_i   and   m_i >= sum_e T_ie y_e for each clique   (peak memory has an m_i),
                y_e is 0 or 1.

Without the budgets b_i the corners of this polytope are the SubNets, so that the relaxation is tight: few branches of
HiGHS close what the budgets open. Only the budgets change from one program of a space to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from autotailor.ir.metrics.memory import PeakMemory
from autotailor.ir.space.metric import FloatArray, Metric
from autotailor.ir.space.subnet import IntArray, largest
from autotailor.search.constrained.cliques import Cliques, steps_of, tables_of
from autotailor.search.constrained.constraint import Constraint

INFEASIBLE = 2


@dataclass(frozen=True, eq=False)
class Answer:
    """What HiGHS found.

    Attributes:
        row: choice indices ``[variables]`` of a SubNet; None where none was found.
        bound: lower bound of what was minimised; infinite where nothing keeps the budgets.
    """

    row: IntArray | None
    bound: float


class Program:
    """The program of one objective and some constraints; its budgets are given anew for each answer."""

    def __init__(self, objective: Metric, constraints: Sequence[Constraint], max_table: int) -> None:
        loss = tables_of(objective, max_table)
        sums = [tables_of(c.metric, max_table) for c in constraints]
        steps = [steps_of(c.metric) for c in constraints]
        scopes = [scope for tables in (loss, *sums, *steps) for scope, _ in tables]
        self.space = objective.space
        self.cliques = Cliques.of(self.space, scopes, max_table)
        self.loss = -self.cliques.summed(loss)
        self.costs = np.stack([self.cliques.summed(tables) for tables in sums])
        self.peaks = [self.cliques.largest(tables) for tables in steps]
        self.constants = np.array([self._constant(c.metric, t) for c, t in zip(constraints, sums, strict=True)])
        self.objective_constant = self._constant(objective, loss)
        self._agreement, self._ones = self._structure()
        self._upper = self.cliques.allowed()

    def answer(self, budgets: FloatArray, seconds: float, gap: float) -> Answer:
        """The SubNet with the highest objective within budgets ``[constraints]``."""
        return self._solve(np.append(self.loss, np.zeros(len(self.costs) + 1)), budgets, 0.0, seconds, gap)

    def nearest(self, budgets: FloatArray, seconds: float) -> Answer:
        """The SubNet whose largest excess over the budgets is least, as a share of the budget."""
        goal = np.zeros(len(self.loss) + len(self.costs) + 1)
        goal[-1] = 1.0
        return self._solve(goal, budgets, np.inf, seconds, 0.0)

    def _solve(self, goal: FloatArray, budgets: FloatArray, excess: float, seconds: float, gap: float) -> Answer:
        """Minimises; columns are the entries, a memory m_i for each constraint, and the excess over the budgets."""
        entries, count = len(self.loss), len(self.costs)
        scale = np.abs(budgets)[:, None]
        within = sparse.csr_array(np.hstack([self.costs / scale, np.eye(count) / scale, -np.ones((count, 1))]))
        rows = [self._agreement, within, *self._memories()]
        low = [self._ones, np.full(count, -np.inf)]
        high = [self._ones, (budgets - self.constants) / scale[:, 0]]
        number = sum(len(found) for found in self.peaks)
        limits = (np.concatenate([*low, np.full(number, -np.inf)]), np.concatenate([*high, np.zeros(number)]))
        upper = np.concatenate([self._upper, [np.inf if found else 0.0 for found in self.peaks], [excess]])
        lower = np.concatenate([np.zeros(entries + count), [-excess]])
        result = milp(
            goal,
            integrality=np.concatenate([np.ones(entries), np.zeros(count + 1)]),
            bounds=Bounds(lower, upper),
            constraints=LinearConstraint(sparse.vstack(rows), *limits),
            options={"time_limit": seconds, "mip_rel_gap": gap},
        )
        if result.status == INFEASIBLE:
            return Answer(None, np.inf)
        bound = -np.inf if result.mip_dual_bound is None else float(result.mip_dual_bound)
        return Answer(None if result.x is None else self._decode(result.x[:entries]), bound)

    def _memories(self) -> list[sparse.csr_array]:
        """Rows ``sum_e T_ie y_e - m_i <= 0``, one for each clique with steps."""
        entries, count = len(self.loss), len(self.costs)
        rows = []
        for constraint, found in enumerate(self.peaks):
            for clique, values in found.items():
                row = np.zeros((1, entries + count + 1))
                row[0, self.cliques.starts[clique] : self.cliques.starts[clique + 1]] = values
                row[0, entries + constraint] = -1.0
                rows.append(sparse.csr_array(row))
        return rows

    def _structure(self) -> tuple[sparse.csr_array, FloatArray]:
        """Rows and right-hand sides that make the weights of the cliques agree."""
        rows: list[IntArray] = []
        columns: list[IntArray] = []
        signs: list[FloatArray] = []
        ones: list[float] = []
        for clique, parent in enumerate(self.cliques.parents):
            separator = self.cliques.scopes[clique][:-1]
            sides = [(clique, 1.0)] if parent is None else [(clique, 1.0), (parent, -1.0)]
            shape = tuple(len(self.space.variables[v].choices) for v in separator)
            for side, sign in sides:
                chosen = self.cliques.entries(side)[:, list(separator)].T
                place = np.ravel_multi_index(tuple(chosen), shape) if separator else np.zeros(chosen.shape[1], int)
                rows.append(len(ones) + place)
                columns.append(self.cliques.starts[side] + np.arange(len(place)))
                signs.append(np.full(len(place), sign))
            ones.extend([1.0 if parent is None else 0.0] * max(1, int(np.prod(shape, dtype=int))))
        place = (np.concatenate(rows), np.concatenate(columns))
        width = len(self.loss) + len(self.costs) + 1
        matrix = sparse.coo_array((np.concatenate(signs), place), shape=(len(ones), width))
        return sparse.csr_array(matrix), np.array(ones)

    def _constant(self, metric: Metric | PeakMemory, tables: Sequence[tuple[tuple[int, ...], FloatArray]]) -> float:
        """What a metric adds to its tables."""
        plain = metric.resident if isinstance(metric, PeakMemory) else metric
        row = largest(self.space).to_array()
        known = sum(float(table[tuple(row[list(scope)])]) for scope, table in tables)
        baseline = metric.baseline if isinstance(metric, PeakMemory) else 0.0
        return float(plain.linear(row)[0]) - known + baseline

    def _decode(self, weights: FloatArray) -> IntArray:
        """The choice of each variable: the entry of its clique with the largest weight."""
        row = np.zeros(len(self.space), dtype=np.int64)
        for clique, scope in enumerate(self.cliques.scopes):
            own = weights[self.cliques.starts[clique] : self.cliques.starts[clique + 1]]
            row[scope[-1]] = self.cliques.entries(clique)[int(np.argmax(own)), scope[-1]]
        return row
