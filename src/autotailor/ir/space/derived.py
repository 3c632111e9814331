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
        codes = self._code(total)
        return np.asarray(np.searchsorted(self._codes, codes), dtype=np.int64)

    def _code(self, rows: IntArray) -> IntArray:
        """One integer for each row, in the order of the rows."""
        base = int(self.values.max(initial=0)) + 1
        code = np.zeros(len(rows), dtype=np.int64)
        for column in rows.T:
            code = code * base + column
        return code

    @cached_property
    def _codes(self) -> IntArray:
        return self._code(self.values)


def entries(variables: Sequence[str], derived: Derived | None, space: Space, subnets: IntArray) -> tuple[IntArray, ...]:
    """Where choice indices ``[n, variables]`` stand in a table over variables and derived values."""
    index = tuple(subnets[:, space.positions[name]] for name in variables)
    return index if derived is None else (*index, derived.index(space, subnets))


def _distinct(rows: IntArray) -> IntArray:
    """Distinct rows in rising order."""
    return np.unique(rows, axis=0)
