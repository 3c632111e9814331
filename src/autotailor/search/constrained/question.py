"""One set of budgets: the rows of a program that some SubNet breaks, as shares of their limits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import IntArray
from autotailor.search.constrained.cliques import Reduced
from autotailor.search.constrained.program import Program

WITHIN = 1e-9
"""A value may exceed its limit by this share of the limit, which is what sums in another order differ by."""


@dataclass(frozen=True, eq=False)
class Question:
    """Limits of some rows of a program.

    Attributes:
        program: the tables.
        rows: indices of the rows that some SubNet of the space breaks ``[rows]``; the others need not be looked at.
        limits: of these rows ``[rows]``.
    """

    program: Program
    rows: IntArray
    limits: FloatArray

    @classmethod
    def of(cls, program: Program, limits: FloatArray) -> Question:
        """The question of limits ``[constraints]``; infinite where a constraint has none."""
        each = limits[program.owners]
        rows = np.flatnonzero(program.highest > each)
        return cls(program, rows, each[rows])

    @cached_property
    def scale(self) -> FloatArray:
        """What values are divided by ``[rows]``: the sizes of the limits."""
        return sizes(self.limits)

    @cached_property
    def costs(self) -> FloatArray:
        """Costs of the entries as shares of the limits ``[rows, entries]``."""
        return np.asarray(self.program.costs[self.rows] / self.scale[:, None])

    @cached_property
    def constants(self) -> FloatArray:
        """What is added to the costs of a SubNet's entries to get its excess over each limit ``[rows]``."""
        return np.asarray((self.program.constants[self.rows] - self.limits) / self.scale)

    @cached_property
    def reduced(self) -> Reduced:
        """The excess of each row alone, as a share of its limit."""
        whole = self.program.reduced_costs
        least = whole.least[self.rows] / self.scale + self.constants
        return Reduced(least, whole.excess[self.rows] / self.scale[:, None])

    def excesses(self, values: FloatArray) -> FloatArray:
        """By what share of its limit each of some SubNets, with values ``[n, rows of the program]``, exceeds each row.

        Returns:
            ``[n, rows]``; negative where a SubNet keeps the limit.
        """
        return np.asarray((values[:, self.rows] - self.limits) / self.scale)

    def largest_excesses(self, values: FloatArray) -> FloatArray:
        """The largest of ``excesses`` of each SubNet ``[n]``; minus infinity without rows."""
        return np.asarray(self.excesses(values).max(axis=1, initial=-np.inf))


def sizes(limits: FloatArray) -> FloatArray:
    """What excesses are shares of: the sizes of limits, and 1 for a limit of 0."""
    return np.where(limits == 0.0, 1.0, np.abs(limits))
