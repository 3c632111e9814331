"""The SubNets that were met so far, which every set of budgets starts from."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import IntArray
from autotailor.search.constrained.program import Program


class Known:
    """SubNets with their losses and values."""

    def __init__(self, program: Program, rows: IntArray) -> None:
        self.program = program
        self.rows = rows

    def add(self, row: IntArray) -> bool:
        """Adds a SubNet ``[variables]``; False where it is known already."""
        if (self.rows == row).all(axis=1).any():
            return False
        losses = np.append(self.losses, self.program.losses(row[None]))
        values = np.concatenate([self.values, self.program.values(row[None])])
        self.rows = np.concatenate([self.rows, row[None]])
        self.losses, self.values = losses, values
        return True

    @cached_property
    def losses(self) -> FloatArray:
        """Negated objective of each SubNet, without its constant ``[n]``."""
        return self.program.losses(self.rows)

    @cached_property
    def values(self) -> FloatArray:
        """Values of each SubNet ``[n, rows of the program]``."""
        return self.program.values(self.rows)
