"""The exact front by variable elimination over additive terms.

Accuracy and the cost that the search minimises (such as latency) are sums of tables over few variables. To eliminate a
variable, all tables that mention the variable are added up over the variables that occur in them (the clique). For each
assignment of the other variables of the clique (the separator), the partial fronts of the variable's choices are
united, and dominated points are dropped. What is left is the variable's message, a table over the separator that later
eliminations add up with the terms, as in max-sum message passing. Dropping is safe: a partial assignment that costs
more and is less accurate than another one stays so, whatever the other variables are, because their terms are only
added. After the last variable, the front of the whole space is left. The elimination proceeds from stage to stage, as
in dynamic programming, because a stage shares only its width with the next one.

The variables of a removed block may only have their default choice, so that every SubNet occurs once, in canonical
form.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.metric import FloatArray, Metric, grid, scope_of, shape_of
from autotailor.ir.space.variable import Space
from autotailor.search.config import SearchConfig, SearchError
from autotailor.search.front import Front, Objectives, non_dominated

ChoiceArray = npt.NDArray[np.int16]

_LARGEST_PRODUCT = 4_000_000
"""Sums of two points that are computed at once; larger factors are thinned before, to bound the memory."""

COST, LOSS = 0, 1


@dataclass(frozen=True, eq=False)
class Partial:
    """Partial assignments that no other one dominates, by rising cost and falling loss.

    Attributes:
        cost: sum of the eliminated terms ``[k]``.
        loss: negated accuracy of the eliminated terms ``[k]``.
        choices: choice indices ``[k, variables]``, 0 for variables that are not decided yet.
        slack: upper bound of the cost that thinning has added so far.
    """

    cost: FloatArray
    loss: FloatArray
    choices: ChoiceArray
    slack: float = 0.0

    def __len__(self) -> int:
        return len(self.cost)

    def extended(self, variable: int, choice: int, cost: float, loss: float) -> Partial:
        """The same assignments with one more variable decided, whose choice adds cost and loss."""
        choices = self.choices.copy()
        choices[:, variable] = choice
        return Partial(self.cost + cost, self.loss + loss, choices, self.slack)


def nothing(variables: int) -> Partial:
    """The neutral element of ``product``: no variable is decided, cost and loss are 0."""
    return Partial(np.zeros(1), np.zeros(1), np.zeros((1, variables), dtype=np.int16))


def union(parts: list[Partial], variables: int, max_points: int) -> Partial:
    """The front of the points of several partial fronts over the same variables; empty without partial fronts."""
    if not parts:
        empty = np.empty(0)
        return Partial(empty, empty, np.empty((0, variables), dtype=np.int16))
    cost = np.concatenate([p.cost for p in parts])
    loss = np.concatenate([p.loss for p in parts])
    rows = non_dominated(cost, -loss)
    choices = np.concatenate([p.choices for p in parts])[rows]
    return thinned(Partial(cost[rows], loss[rows], choices, max(p.slack for p in parts)), max_points)


def product(a: Partial, b: Partial, max_points: int) -> Partial:
    """The front of all sums of a point of ``a`` and a point of ``b``, whose variables are disjoint."""
    while len(a) * len(b) > _LARGEST_PRODUCT:
        if len(a) > len(b):
            a = thinned(a, len(a) // 2)
        else:
            b = thinned(b, len(b) // 2)
    cost = np.add.outer(a.cost, b.cost).ravel()
    loss = np.add.outer(a.loss, b.loss).ravel()
    rows = non_dominated(cost, -loss)
    choices = a.choices[rows // max(len(b), 1)] + b.choices[rows % max(len(b), 1)]
    return thinned(Partial(cost[rows], loss[rows], choices, a.slack + b.slack), max_points)


def thinned(part: Partial, max_points: int) -> Partial:
    """Keeps at most ``max_points + 1`` points: the one with the least loss of each bin of cost, and the cheapest.

    For every dropped point, a point is kept that has no greater loss and costs at most one bin more.
    """
    if len(part) <= max_points:
        return part
    width = (part.cost[-1] - part.cost[0]) / max_points
    bins = np.minimum(((part.cost - part.cost[0]) / width).astype(np.int64), max_points - 1)
    last_of_bin = np.append(bins[1:] != bins[:-1], True)
    last_of_bin[0] = True
    return Partial(
        part.cost[last_of_bin],
        part.loss[last_of_bin],
        part.choices[last_of_bin],
        part.slack + float(width),
    )


@dataclass(frozen=True, eq=False)
class ExactFront:
    """The optimal front under the predictors.

    Attributes:
        front: of the whole space.
        slack: 0 where the front is exact. Otherwise, for every SubNet of the space, the front holds a SubNet that
            is at least as accurate and costs at most this much more (both predicted), in the cost's unit.
    """

    front: Front
    slack: float


@dataclass(frozen=True, eq=False)
class _Table:
    """Cost and loss (negated accuracy) ``[choices ..., 2]``; the cost is infinite outside the canonical form."""

    scope: tuple[int, ...]
    values: FloatArray


@dataclass(frozen=True, eq=False)
class _Message:
    """Partial fronts of the eliminated variables, for each assignment of ``scope``."""

    scope: tuple[int, ...]
    fronts: dict[tuple[int, ...], Partial]

    def at(self, assignment: dict[int, int]) -> Partial:
        """The partial front for an assignment of at least the variables of the scope."""
        return self.fronts[tuple(assignment[v] for v in self.scope)]


def exact_front(objectives: Objectives, max_points: int = 2000, max_table: int = 200_000) -> ExactFront:
    """All SubNets of the space that no other SubNet dominates (see the module's docstring).

    Args:
        objectives: accuracy and cost, sums of terms over one space.
        max_points: longer partial fronts are thinned to this length by bins of cost; ``slack`` then bounds
            the error.
        max_table: largest elimination table, in entries.

    Raises:
        SearchError: terms couple so many variables that a table would be larger than ``max_table``.
    """
    space = objectives.space
    tables = _tables(space, objectives, max_table)
    order = elimination_order(space, [t.scope for t in tables], max_table)
    messages: list[_Message] = []
    for variable in order:
        message = _eliminate(
            space,
            variable,
            [table for table in tables if variable in table.scope],
            [message for message in messages if variable in message.scope],
            max_points,
        )
        tables = [table for table in tables if variable not in table.scope]
        messages = [message for message in messages if variable not in message.scope]
        messages.append(message)
    result = nothing(len(space))
    for message in messages:
        result = product(result, message.fronts[()], max_points)
    front = Front.of(objectives, result.choices.astype(np.int64), "exact")
    return ExactFront(front, result.slack)


def exact_or_reason(objectives: Objectives, config: SearchConfig) -> tuple[ExactFront | None, str]:
    """The exact front and an empty text, or None and why there is none.

    Raises:
        SearchError: the terms couple too many variables, and ``search.exact=always``.
    """
    if config.exact == "never":
        return None, "search.exact=never"
    try:
        return exact_front(objectives, config.exact_points, config.exact_table), ""
    except SearchError as error:
        if config.exact == "always":
            raise
        return None, str(error)


def _tables(space: Space, objectives: Objectives, max_table: int) -> list[_Table]:
    """Terms of both metrics, and the conditions of the canonical form, as one table for each set of variables."""
    values: dict[tuple[int, ...], FloatArray] = {}

    def add(scope: tuple[int, ...], column: int, table: FloatArray) -> None:
        if scope not in values:
            values[scope] = np.zeros((*shape_of(space, scope), 2))
        values[scope][..., column] += table

    for column, metric, sign in ((COST, objectives.cost, 1.0), (LOSS, objectives.accuracy, -1.0)):
        for scope, table in metric_tables(metric, max_table):
            add(scope, column, sign * table)
    for position, variable in enumerate(space):
        if variable.gate is not None:
            scope = tuple(sorted((position, *(space.positions[name] for name in variable.gate.variables))))
            rows = grid(space, scope)
            closed = ~variable.gate.is_open(space.positions, rows)
            forbidden = closed & (rows[:, position] != variable.default)
            add(scope, COST, np.where(forbidden, np.inf, 0.0).reshape(shape_of(space, scope)))
    return [_Table(scope, table) for scope, table in values.items()]


def metric_tables(metric: Metric, max_table: int) -> Iterable[tuple[tuple[int, ...], FloatArray]]:
    """Scope (sorted columns, including the gate's) and values of each term; constant terms are left out."""
    space = metric.space
    for term in metric.terms:
        scope = scope_of(space, term)
        entries = int(np.prod(shape_of(space, scope), dtype=object))
        if entries > max_table:
            raise SearchError(
                f"exact front: a table of {entries} entries for {metric.name} of {term.label} over {len(scope)} "
                f"variables, expected at most {max_table}; raise search.exact_table, or set search.exact=never"
            )
        if scope:
            yield scope, term.values(space, grid(space, scope)).reshape(shape_of(space, scope))


def elimination_order(space: Space, scopes: Iterable[tuple[int, ...]], max_table: int) -> list[int]:
    """The order of elimination; each step takes the variable with the smallest table (greedy)."""
    linked: dict[int, set[int]] = {v: set() for v in range(len(space))}
    for scope in scopes:
        for v in scope:
            linked[v] |= set(scope) - {v}
    order = []
    while linked:
        sizes = {v: int(np.prod(shape_of(space, [v, *others]), dtype=object)) for v, others in linked.items()}
        v = min(sizes, key=lambda u: (sizes[u], -u))
        if sizes[v] > max_table:
            names = ", ".join(space.variables[u].name for u in sorted({v, *linked[v]}))
            raise SearchError(
                f"exact front: an elimination table of {sizes[v]} entries over {names}, expected at most "
                f"{max_table}; "
                "raise search.exact_table, or set search.exact=never"
            )
        others = linked.pop(v)
        for u in others:
            linked[u] = (linked[u] | others) - {u, v}
        order.append(v)
    return order


def _eliminate(
    space: Space, variable: int, tables: list[_Table], messages: list[_Message], max_points: int
) -> _Message:
    """Eliminates a variable.

    Returns:
        The message over the separator: for each assignment, the united partial fronts of the variable's choices.
    """
    clique = sorted({variable}.union(*(t.scope for t in tables), *(m.scope for m in messages)))
    separator = [v for v in clique if v != variable]
    total = np.zeros((*shape_of(space, clique), 2))
    for table in tables:
        total += np.expand_dims(table.values, [clique.index(v) for v in clique if v not in table.scope])
    total = np.moveaxis(total, clique.index(variable), -2)
    fronts = {}
    for key in itertools.product(*(range(n) for n in shape_of(space, separator))):
        assignment = dict(zip(separator, key, strict=True))
        parts = []
        for choice in range(len(space.variables[variable].choices)):
            cost, loss = total[key][choice]
            if np.isinf(cost):
                continue
            factors = [message.at({**assignment, variable: choice}) for message in messages] or [nothing(len(space))]
            part = reduce(lambda a, b: product(a, b, max_points), factors)
            parts.append(part.extended(variable, choice, cost, loss))
        fronts[key] = union(parts, len(space), max_points)
    return _Message(tuple(separator), fronts)
