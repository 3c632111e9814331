"""Metrics: a metric of SubNets is a sum of terms (small tables over few variables), perhaps through a link."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from autotailor.ir.errors import SpaceError
from autotailor.ir.space.flat_tables import FlatTables
from autotailor.ir.space.link import IDENTITY, Link
from autotailor.ir.space.subnet import IntArray
from autotailor.ir.space.term import FloatArray, Term
from autotailor.ir.space.variable import Space

__all__ = ["FloatArray", "Metric", "Term"]


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
        """Value of the metric for each row of choice indices ``[n, variables]``: ``[n]``, in ``unit``.

        Raises:
            SpaceError: the array is none of this space's choice indices.
        """
        return self.link.value(self.linear(subnets))

    def linear(self, subnets: npt.ArrayLike) -> FloatArray:
        """Constant and terms added up, before the link, for choice indices ``[n, variables]``: ``[n]``."""
        array = np.array(self._numbers(subnets), dtype=np.int64, ndmin=2)
        if array.shape[1] != len(self.space):
            raise SpaceError(f"metric {self.name}: expected an array [n, {len(self.space)}], got {list(array.shape)}")
        self._check_choices(array)
        return self.constant + self._flat.sums(array)

    def _numbers(self, subnets: npt.ArrayLike) -> npt.ArrayLike:
        """The choice indices, where they are whole numbers; a fraction cut off would answer for another SubNet."""
        if isinstance(subnets, np.ndarray) and subnets.dtype.kind in "iu":
            return subnets
        try:
            array = np.asarray(subnets)
            if array.dtype.kind in "iu" or (array.dtype.kind == "f" and (array == np.rint(array)).all()):
                return array
        except ValueError:  # rows of several lengths
            pass
        raise SpaceError(
            f"metric {self.name}: expected choice indices [n, {len(self.space)}], whole numbers as SubNet.to_array() "
            f"and stack(subnets) give them, not {type(subnets).__name__}"
        )

    def _check_choices(self, array: IntArray) -> None:
        """Refuses indices that are outside the choices; a flat table would answer with another SubNet's value."""
        outside = array.view(np.uint64) >= self._limits  # a negative index is a huge unsigned one
        if outside.any():
            row, column = np.argwhere(outside)[0]
            raise SpaceError(
                f"metric {self.name}: choice index {array[row, column]} of {self.space.variables[column].name} in row "
                f"{row} is outside 0..{self._limits[column] - 1}"
            )

    @cached_property
    def _limits(self) -> npt.NDArray[np.uint64]:
        return np.array([len(variable.choices) for variable in self.space], dtype=np.uint64)

    @cached_property
    def _flat(self) -> FlatTables:
        return FlatTables.of(self.space, self.terms)
