"""The cliques of a space: sets of variables that tables couple, in a tree of elimination.

Eliminating the variables one by one gives a clique for each variable: the variable, last, and those that it is still
coupled with (the separator). The separator lies inside the clique of the next of its variables that is eliminated, the
parent. A choice of entries, one of each clique, that agrees with the parents' on the separators is a SubNet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from autotailor.ir.metrics.memory import PeakMemory
from autotailor.ir.space.flat_tables import Scope, grid, shape_of
from autotailor.ir.space.metric import FloatArray, Metric
from autotailor.ir.space.subnet import IntArray
from autotailor.ir.space.variable import Space
from autotailor.search.elimination import elimination_order, metric_tables
from autotailor.search.errors import SearchError

Tables = Sequence[tuple[Scope, FloatArray]]


def tables_of(metric: Metric | PeakMemory, max_table: int) -> list[tuple[Scope, FloatArray]]:
    """Scopes and tables that a metric adds up; of peak memory those of the resident weights.

    Raises:
        SearchError: a term couples more than ``max_table`` joint choices.
    """
    return list(metric_tables(metric.resident if isinstance(metric, PeakMemory) else metric, max_table))


def steps_of(metric: Metric | PeakMemory) -> list[tuple[Scope, FloatArray]]:
    """Scopes and tables whose largest entry is added to a metric's sum: those of the steps of peak memory.

    Raises:
        SearchError: the memory of a step couples too many variables for a table.
    """
    if not isinstance(metric, PeakMemory):
        return []
    if metric.liveness.wide:
        raise SearchError(
            f"constraint {metric.name}: the memory of {len(metric.liveness.wide)} steps depends on too many variables "
            "jointly for a table; leave this constraint out, or offer fewer choices in model.space"
        )
    return list(metric.liveness.tables.items())


@dataclass(frozen=True, eq=False)
class Cliques:
    """The cliques of a space, in the order of elimination.

    Attributes:
        space: the variables.
        scopes: columns of each clique; the eliminated variable is the last.
        parents: index of each clique's parent; None where the separator is empty.
    """

    space: Space
    scopes: tuple[Scope, ...]
    parents: tuple[int | None, ...]

    @classmethod
    def of(cls, space: Space, scopes: Sequence[Scope], max_table: int) -> Cliques:
        """Eliminates all variables; SearchError where a clique has more than ``max_table`` entries."""
        gates = [
            (position, *(space.positions[name] for name in variable.gate.variables))
            for position, variable in enumerate(space)
            if variable.gate is not None
        ]
        coupled = [set(scope) for scope in (*scopes, *gates)]
        order = elimination_order(space, [tuple(scope) for scope in coupled], max_table)
        cliques: list[Scope] = []
        for variable in order:
            others = set[int]().union(*(scope for scope in coupled if variable in scope)) - {variable}
            coupled = [*(scope for scope in coupled if variable not in scope), others]
            cliques.append((*sorted(others), variable))
        home = {clique[-1]: index for index, clique in enumerate(cliques)}
        parents = tuple(min((home[v] for v in clique[:-1]), default=None) for clique in cliques)
        return cls(space, tuple(cliques), parents)

    @cached_property
    def starts(self) -> IntArray:
        """The first entry of each clique among the entries of all cliques; last, the number of entries."""
        sizes = [math.prod(shape_of(self.space, scope)) for scope in self.scopes]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def entries(self, clique: int) -> IntArray:
        """Choice indices ``[entries, variables]`` of the entries of a clique, the other variables at their default."""
        return grid(self.space, self.scopes[clique])

    def allowed(self) -> IntArray:
        """1 for each entry of all cliques in canonical form, else 0: ``[entries]``."""
        parts = []
        for index, scope in enumerate(self.scopes):
            rows, kept = self.entries(index), np.ones(self.starts[index + 1] - self.starts[index], dtype=bool)
            for column in scope:
                gate = self.space.variables[column].gate
                if gate is not None and {self.space.positions[name] for name in gate.variables} <= set(scope):
                    is_open = gate.is_open(self.space.positions, rows)
                    kept &= is_open | (rows[:, column] == self.space.variables[column].default)
            parts.append(kept)
        return np.concatenate(parts).astype(np.int64)

    def home(self, scope: Scope) -> int:
        """The first clique that contains a scope."""
        return next(index for index, clique in enumerate(self.scopes) if set(scope) <= set(clique))

    def summed(self, tables: Tables) -> FloatArray:
        """Tables added up over the entries of all cliques: ``[entries]``."""
        total = np.zeros(int(self.starts[-1]))
        for scope, table in tables:
            clique = self.home(scope)
            total[self.starts[clique] : self.starts[clique + 1]] += self._spread(clique, scope, table)
        return total

    def largest(self, tables: Tables) -> dict[int, FloatArray]:
        """Clique to the largest of its tables at each entry of the clique."""
        found: dict[int, FloatArray] = {}
        for scope, table in tables:
            clique = self.home(scope)
            values = self._spread(clique, scope, table)
            found[clique] = np.maximum(found[clique], values) if clique in found else values
        return found

    def _spread(self, clique: int, scope: Scope, table: FloatArray) -> FloatArray:
        """A table over a scope as one over the entries of a clique."""
        rows = self.entries(clique)
        return np.asarray(table[tuple(rows[:, column] for column in scope)], dtype=np.float64)
