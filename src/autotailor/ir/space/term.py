"""Terms: small tables over the choices of a few variables, which metrics sum up."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.derived import Derived, entries
from autotailor.ir.space.gate import Gate
from autotailor.ir.space.subnet import IntArray
from autotailor.ir.space.variable import Space

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Term:
    """A table over the choices of a few variables, which counts only where its gate is open.

    Attributes:
        variables: names; axis i of ``table`` runs over the choices of ``variables[i]``.
        table: values in the metric's unit, shape ``[len(choices) of each variable]``.
        gate: of the block that the term belongs to; None where the block is always there.
        label: what the term stands for, for people.
        derived: sums over many further variables, the last axis of ``table``; None where there are none.
    """

    variables: tuple[str, ...]
    table: FloatArray
    gate: Gate | None = None
    label: str = ""
    derived: Derived | None = None

    @property
    def scope(self) -> tuple[str, ...]:
        """Names of all variables that the term depends on, including the variables of the gate."""
        further = () if self.derived is None else self.derived.variables
        gate = () if self.gate is None else self.gate.variables
        return tuple(dict.fromkeys((*self.variables, *further, *gate)))

    def shape(self, space: Space) -> tuple[int, ...]:
        """Shape that the table must have."""
        sums = () if self.derived is None else (len(self.derived.values),)
        return (*(len(space[name].choices) for name in self.variables), *sums)

    def values(self, space: Space, subnets: IntArray) -> FloatArray:
        """Value of the term for choice indices ``[n, variables]``: ``[n]``."""
        index = entries(self.variables, self.derived, space, subnets)
        picked = self.table[index] if index else np.full(len(subnets), float(self.table))
        if self.gate is None:
            return np.asarray(picked, dtype=np.float64)
        return np.where(self.gate.is_open(space.positions, subnets), picked, 0.0)
