"""Terms and metrics: a metric of SubNets is a sum of small tables over few variables, perhaps through a link."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from autotailor.ir.errors import SpaceError
from autotailor.ir.space.gate import Gate
from autotailor.ir.space.joint_sizes import Derived, entries
from autotailor.ir.space.link import IDENTITY, Link
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


@dataclass(frozen=True, eq=False)
class Metric:
    """A sum of terms with a name and a unit, over one space.

    >>> metric.predict(array)   # array: choice indices [n, variables], result: [n]

    Attributes:
        name: of the metric.
        unit: of its values.
        space: of the SubNets.
        terms: whose values are added, on the scale of the link's argument.
        constant: added to the terms.
        link: strictly rising function from the sum to the value; the tables of the terms are in ``unit`` where the link
            is the identity.
    """

    name: str
    unit: str
    space: Space
    terms: tuple[Term, ...]
    constant: float = field(default=0.0)
    link: Link = IDENTITY

    def __post_init__(self) -> None:
        for term in self.terms:
            shape = term.shape(self.space)
            if np.shape(term.table) != shape:
                raise SpaceError(
                    f"metric {self.name}, term {term.label!r}: table of shape {np.shape(term.table)}, "
                    f"expected {shape} for variables {term.variables}"
                )

    def predict(self, subnets: npt.ArrayLike) -> FloatArray:
        """Value of the metric for each row of choice indices ``[n, variables]``: ``[n]``, in ``unit``."""
        return self.link.value(self.linear(subnets))

    def linear(self, subnets: npt.ArrayLike) -> FloatArray:
        """Constant and terms added up, before the link, for choice indices ``[n, variables]``: ``[n]``."""
        array = np.array(subnets, dtype=np.int64, ndmin=2)
        if array.shape[1] != len(self.space):
            raise SpaceError(f"metric {self.name}: expected an array [n, {len(self.space)}], got {list(array.shape)}")
        total = np.full(len(array), self.constant)
        for term in self.terms:
            total += term.values(self.space, array)
        return total
