"""The SubNets that were met so far, which every set of budgets starts from."""

from __future__ import annotations

import numpy as np

from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import IntArray
from autotailor.search.constrained.program import Program


class Known:
    """SubNets with their losses and values.

    Attributes:
        program: the problem.
        rows: choice indices ``[n, variables]``.
        losses: negated objective of each SubNet, without its constant ``[n]``.
        values: of each SubNet ``[n, rows of the program]``.
    """

    def __init__(self, program: Program, rows: IntArray) -> None:
        self.program, self.rows = program, rows
        self.losses: FloatArray = program.losses(rows)
        self.values: FloatArray = program.values(rows)

    def add(self, row: IntArray) -> bool:
        """Adds a SubNet ``[variables]``; False where it is known already."""
        if (self.rows == row).all(axis=1).any():
            return False
        self.losses = np.append(self.losses, self.program.losses(row[None]))
        self.values = np.concatenate([self.values, self.program.values(row[None])])
        self.rows = np.concatenate([self.rows, row[None]])
        return True
