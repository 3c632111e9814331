"""The cliques of a space: sets of variables that tables couple, in a tree of elimination.

Eliminating the variables one by one gives a clique for each variable: the variable, last, and those that it is still
coupled with (the separator). The separator lies inside the clique of the next of its variables that is eliminated, the
parent. A choice of entries, one of each clique, that agrees with the parents' on the separators is a SubNet.

One pass over the cliques finds the least sum of tables over all SubNets, and what each choice costs beyond that sum.
For weights w_e of the entries of all cliques, the sum of a SubNet is the sum of the weights of its entries. From the
leaves of the tree of cliques to its root, each clique tells its parent the least sum of the eliminated variables for
each assignment of the separator (a message). What an entry costs more than the message is the *excess* of the entry:

    sum of a SubNet = least sum of the space + sum of the excesses of its entries,      excess >= 0.

Therefore the least sum plus the excesses of the variables that are decided bounds the sum of every SubNet that agrees
with these decisions, from below. ``branches`` searches with these bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from autotailor.ir.metrics.memory import PeakMemory
from autotailor.ir.space.metric import FloatArray, Metric, Scope, grid, shape_of
from autotailor.ir.space.subnet import IntArray
from autotailor.ir.space.variable import Space
from autotailor.search.config import SearchError
from autotailor.search.elimination import elimination_order, metric_tables

Tables = Sequence[tuple[Scope, FloatArray]]

FORBIDDEN = 1e18
"""Weight of entries outside the canonical form. It is finite, so that differences of weights stay numbers."""


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


@dataclass(frozen=True)
class Separator:
    """The variables that a clique shares with its parent; its assignments are numbered.

    Attributes:
        columns: of the variables.
        strides: what one more of each variable's choice index adds to an assignment's number.
    """

    columns: Scope
    strides: tuple[int, ...]

    @classmethod
    def of(cls, space: Space, columns: Scope) -> Separator:
        """Numbers the assignments as a flattened table over the columns does."""
        shape = shape_of(space, columns)
        return cls(columns, tuple(math.prod(shape[place + 1 :]) for place in range(len(shape))))

    def number(self, rows: npt.NDArray[np.integer]) -> IntArray:
        """The number of the assignment that SubNets ``[n, variables]`` have: ``[n]``."""
        numbers = np.zeros(len(rows), dtype=np.int64)
        for column, stride in zip(self.columns, self.strides, strict=True):
            numbers += rows[:, column].astype(np.int64) * stride
        return numbers


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

    @cached_property
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

    @cached_property
    def separators(self) -> tuple[Separator, ...]:
        """The separator of each clique."""
        return tuple(Separator.of(self.space, scope[:-1]) for scope in self.scopes)

    @cached_property
    def choices(self) -> tuple[int, ...]:
        """How many choices the eliminated variable of each clique has."""
        return tuple(len(self.space.variables[scope[-1]].choices) for scope in self.scopes)

    @cached_property
    def places(self) -> tuple[IntArray | None, ...]:
        """For each clique, the assignment of its separator that each entry of its parent has; None without a parent."""
        return tuple(
            None if parent is None else separator.number(self.entries(parent))
            for parent, separator in zip(self.parents, self.separators, strict=True)
        )

    def entries_of(self, rows: IntArray) -> IntArray:
        """The entries that SubNets ``[n, variables]`` choose, one of each clique: ``[n, cliques]``."""
        entries = np.empty((len(rows), len(self.scopes)), dtype=np.int64)
        for clique, (separator, scope) in enumerate(zip(self.separators, self.scopes, strict=True)):
            first = self.starts[clique] + separator.number(rows) * self.choices[clique]
            entries[:, clique] = first + rows[:, scope[-1]]
        return entries

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
        largest: dict[int, FloatArray] = {}
        for scope, table in tables:
            clique = self.home(scope)
            values = self._spread(clique, scope, table)
            largest[clique] = np.maximum(largest[clique], values) if clique in largest else values
        return largest

    def _spread(self, clique: int, scope: Scope, table: FloatArray) -> FloatArray:
        """A table over a scope as one over the entries of a clique."""
        rows = self.entries(clique)
        return np.asarray(table[tuple(rows[:, column] for column in scope)], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Reduced:
    """Some sums of tables over one space.

    Attributes:
        least: the least sum ``[k]``.
        excess: of each entry ``[k, entries]``.
    """

    least: FloatArray
    excess: FloatArray


def reduce(cliques: Cliques, weights: FloatArray) -> Reduced:
    """Passes messages for several weights ``[k, entries]`` at once."""
    total = weights + FORBIDDEN * (1 - cliques.allowed)
    excess, least = np.empty_like(total), np.zeros(len(total))
    for clique, parent in enumerate(cliques.parents):
        own = slice(cliques.starts[clique], cliques.starts[clique + 1])
        table = total[:, own].reshape(len(total), -1, cliques.choices[clique])
        message = table.min(axis=2)
        excess[:, own] = (table - message[:, :, None]).reshape(len(total), -1)
        place = cliques.places[clique]
        if parent is None or place is None:
            least += message[:, 0]
        else:
            total[:, cliques.starts[parent] : cliques.starts[parent + 1]] += message[:, place]
    return Reduced(least, excess)


def best(cliques: Cliques, excess: FloatArray) -> IntArray:
    """Choice indices ``[variables]`` of the SubNet with the least sum, from the excesses ``[entries]`` of one sum."""
    row = np.zeros((1, len(cliques.space)), dtype=np.int64)
    for clique in reversed(range(len(cliques.scopes))):
        count = cliques.choices[clique]
        first = cliques.starts[clique] + int(cliques.separators[clique].number(row)[0]) * count
        row[0, cliques.scopes[clique][-1]] = int(np.argmin(excess[first : first + count]))
    return np.asarray(row[0])
