"""Terms and metrics: everything after compilation is a sum of small tables over variables."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from autotailor.ir.errors import SpaceError
from autotailor.ir.subnet import IntArray
from autotailor.ir.variable import Gate, Space

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Term:
    """A table over the choices of a few variables, counted only while its gate is open.

    Attributes:
        variables: names; axis i of ``table`` runs over the choices of ``variables[i]``.
        table: values in the metric's unit, shape ``[len(choices) of each variable]``.
        gate: the depth variable that can remove the block it belongs to, or None.
        label: what the term stands for, for people.
    """

    variables: tuple[str, ...]
    table: FloatArray
    gate: Gate | None = None
    label: str = ""

    def values(self, space: Space, subnets: IntArray) -> FloatArray:
        """Value of the term for choice indices ``[n, variables]``: ``[n]``."""
        index = tuple(subnets[:, space.positions[name]] for name in self.variables)
        picked = self.table[index] if index else np.full(len(subnets), float(self.table))
        if self.gate is None:
            return np.asarray(picked, dtype=np.float64)
        is_open = subnets[:, space.positions[self.gate.variable]] < self.gate.open_choices
        return np.where(is_open, picked, 0.0)


@dataclass(frozen=True, eq=False)
class Metric:
    """A sum of terms with a name and a unit, over one space.

    >>> metric.predict(array)   # array: choice indices [n, variables], result: [n]
    """

    name: str
    unit: str
    space: Space
    terms: tuple[Term, ...]
    constant: float = field(default=0.0)

    def __post_init__(self) -> None:
        for term in self.terms:
            shape = tuple(len(self.space[name].choices) for name in term.variables)
            if np.shape(term.table) != shape:
                raise SpaceError(
                    f"metric {self.name}, term {term.label!r}: table of shape {np.shape(term.table)}, "
                    f"expected {shape} for variables {term.variables}"
                )

    def predict(self, subnets: npt.ArrayLike) -> FloatArray:
        """Value of the metric for each row of choice indices ``[n, variables]``: ``[n]``, in ``unit``."""
        array = np.array(subnets, dtype=np.int64, ndmin=2)
        if array.shape[1] != len(self.space):
            raise SpaceError(f"metric {self.name}: expected an array [n, {len(self.space)}], got {list(array.shape)}")
        total = np.full(len(array), self.constant)
        for term in self.terms:
            total += term.values(self.space, array)
        return total
