"""Derived variables: sums over many variables as one variable, whose values the parts of the sums can reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from autotailor.ir.space.subnet import IntArray
from autotailor.ir.space.variable import Space


@dataclass(frozen=True, eq=False)
class Contribution:
    """The summands that some variables add to sums: ``table[choice of each variable, sum]``."""

    variables: tuple[str, ...]
    table: IntArray

    @cached_property
    def rows(self) -> IntArray:
        """Distinct contributions ``[n, sums]``."""
        return _distinct(self.table.reshape(-1, self.table.shape[-1]))


@dataclass(frozen=True, eq=False)
class Derived:
    """One or more sums over many variables as one variable of their own.

    Attributes:
        parts: contributions of disjoint groups of variables.
        values: reachable values of the sums ``[n, sums]``, in rising order.
    """

    parts: tuple[Contribution, ...]
    values: IntArray

    @classmethod
    def of(cls, parts: Sequence[Contribution]) -> Derived:
        """Finds the reachable values, part by part."""
        values = np.zeros((1, parts[0].table.shape[-1]), dtype=np.int64)
        for part in parts:
            values = _distinct((values[:, None, :] + part.rows[None, :, :]).reshape(-1, values.shape[1]))
        return cls(tuple(parts), values)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of all variables that the sums depend on."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.variables))

    def index(self, space: Space, subnets: IntArray) -> IntArray:
        """Row of ``values`` for choice indices ``[n, variables]``: ``[n]``."""
        total = np.zeros((len(subnets), self.values.shape[1]), dtype=np.int64)
        for part in self.parts:
            total += part.table[tuple(subnets[:, space.positions[name]] for name in part.variables)]
        indices = np.zeros(len(subnets), dtype=np.int64)
        for column, level in zip(total.T, self._levels, strict=True):
            indices = level.find(indices, column)
        return indices

    @cached_property
    def _levels(self) -> tuple[_Level, ...]:
        """For each sum what tells rows apart by this sum and all sums before it."""
        levels, rows = list[_Level](), np.zeros(len(self.values), dtype=np.int64)
        for column in self.values.T:
            levels.append(level := _Level.of(rows, column))
            rows = level.find(rows, column)
        return tuple(levels)


@dataclass(frozen=True, eq=False)
class _Level:
    """Numbers pairs of a number and a value, in rising order.

    One integer for all sums of a row would be the product of their ranges, which does not fit 64 bits where there are
    many sums. The pairs that occur are at most as many as the rows.

    Attributes:
        values: that occur, rising.
        codes: number times ``len(values)`` plus the place of the value, of each pair that occurs, rising.
    """

    values: IntArray
    codes: IntArray

    @classmethod
    def of(cls, numbers: IntArray, values: IntArray) -> _Level:
        """The level of some pairs."""
        occurring, places = np.unique(values, return_inverse=True)
        return cls(occurring, np.unique(numbers * len(occurring) + places.ravel()))

    def find(self, numbers: IntArray, values: IntArray) -> IntArray:
        """The number of each of some pairs that occur."""
        codes = numbers * len(self.values) + np.searchsorted(self.values, values)
        return np.asarray(np.searchsorted(self.codes, codes), dtype=np.int64)


def entries(variables: Sequence[str], derived: Derived | None, space: Space, subnets: IntArray) -> tuple[IntArray, ...]:
    """Where choice indices ``[n, variables]`` stand in a table over variables and derived values."""
    index = tuple(subnets[:, space.positions[name]] for name in variables)
    return index if derived is None else (*index, derived.index(space, subnets))


def _distinct(rows: IntArray) -> IntArray:
    """Distinct rows in rising order."""
    return np.unique(rows, axis=0)
