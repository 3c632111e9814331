"""Metrics: a metric of SubNets is a sum of terms (small tables over few variables), perhaps through a link.

The terms are summed up once into *flat tables*, so that many SubNets are looked up quickly. Terms over the same
variables are one table, and so are terms whose variables together have few joint choices. The gates are written into
the tables. An entry's place in a flattened table is a sum of choice indices times strides, so that one matrix product
gives the places of all SubNets in all tables. A ResNet50 has 88 terms and 9 flat tables.

Joining ends at ``LARGEST`` entries. Terms whose own variables have more joint choices still share a table with all
terms over the same variables or some of these, up to ``LONGEST`` entries: one look-up in such a table costs more than
in a small one, but much less than a look-up and a gate for each of the terms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from autotailor.ir.errors import SpaceError
from autotailor.ir.space.derived import Derived, entries
from autotailor.ir.space.gate import Gate
from autotailor.ir.space.link import IDENTITY, Link
from autotailor.ir.space.subnet import IntArray
from autotailor.ir.space.variable import Space

FloatArray = npt.NDArray[np.float64]

LARGEST = 4096
"""Entries of a joined table: so many fit the cache nearest to a core."""
LONGEST = 16_384
"""Entries of a table that terms over the same variables share in any case: 128 KiB, which fit a core's second cache."""
ROWS = 2048
"""SubNets that are looked up at once: the places of these SubNets stay in a core's cache."""

Scope = tuple[int, ...]

__all__ = ["FloatArray", "Metric", "Term"]


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


def shape_of(space: Space, scope: Sequence[int]) -> tuple[int, ...]:
    """Number of choices of each variable (column) of a scope."""
    return tuple(len(space.variables[column].choices) for column in scope)


def grid(space: Space, scope: Sequence[int]) -> IntArray:
    """All assignments of a scope, the other variables at their default: ``[product of choices, variables]``."""
    shape = shape_of(space, scope)
    rows = np.tile(np.array([v.default for v in space], dtype=np.int64), (math.prod(shape), 1))
    rows[:, list(scope)] = np.indices(shape).reshape(len(scope), math.prod(shape)).T
    return rows


def scope_of(space: Space, term: Term) -> Scope:
    """Columns of all variables that a term depends on, in rising order."""
    return tuple(sorted(space.positions[name] for name in term.scope))


def strides_of(space: Space, tables: Sequence[tuple[Scope, FloatArray]]) -> npt.NDArray[np.float32]:
    """``[variables, tables]``: choice indices times strides is the place in each flattened table."""
    strides = np.zeros((len(space), len(tables)), dtype=np.float32)
    for column, (scope, table) in enumerate(tables):
        strides[list(scope), column] = np.array(table.strides) // table.itemsize
    return strides


def look_up(
    subnets: IntArray, strides: npt.NDArray[np.float32], tables: Sequence[FloatArray]
) -> Iterator[tuple[slice, Iterator[FloatArray]]]:
    """For some rows of ``[n, variables]`` at a time: the slice of the rows, and their entry of each flat table."""
    for start in range(0, len(subnets), ROWS):
        rows = slice(start, start + ROWS)
        places = (subnets[rows].astype(np.float32) @ strides).T.astype(np.intp, order="C")
        yield rows, (table.take(place) for table, place in zip(tables, places, strict=True))


@dataclass(frozen=True, eq=False)
class FlatTables:
    """A sum of terms over one space.

    Attributes:
        space: the variables.
        strides: ``[variables, tables]``, see ``strides_of``.
        tables: flattened tables.
        others: terms over too many variables for a table, and terms over derived sums.
    """

    space: Space
    strides: npt.NDArray[np.float32]
    tables: tuple[FloatArray, ...]
    others: tuple[Term, ...]

    @classmethod
    def of(cls, space: Space, terms: Iterable[Term]) -> FlatTables:
        """Sums up terms."""
        summed: dict[Scope, FloatArray] = {}
        others = []
        for term in terms:
            scope = scope_of(space, term)
            if term.derived is not None or math.prod(shape_of(space, scope)) > LONGEST:
                others.append(term)
            else:
                table = term.values(space, grid(space, scope)).reshape(shape_of(space, scope))
                summed[scope] = summed[scope] + table if scope in summed else table
        joined = _joined(space, summed)
        return cls(space, strides_of(space, joined), tuple(table.ravel() for _, table in joined), tuple(others))

    def sums(self, subnets: IntArray) -> FloatArray:
        """Sum of all terms for choice indices ``[n, variables]`` that are inside the space: ``[n]``."""
        total = np.zeros(len(subnets))
        for rows, columns in look_up(subnets, self.strides, self.tables):
            for values in columns:
                total[rows] += values
            for term in self.others:
                total[rows] += term.values(self.space, subnets[rows])
        return total


def _joined(space: Space, summed: dict[Scope, FloatArray]) -> list[tuple[Scope, FloatArray]]:
    """Joins tables, the largest first, each with the one that it makes least larger.

    The sum has ``LARGEST`` entries at most, unless the larger one of the two has more already and grows no further.
    """
    groups: list[list[Scope]] = []
    unions: list[set[int]] = []
    for scope in sorted(summed, key=lambda s: (-summed[s].size, s)):
        sizes = [math.prod(shape_of(space, sorted(union.union(scope)))) for union in unions]
        fits = [k for k, size in enumerate(sizes) if size <= LARGEST or unions[k].issuperset(scope)]
        if fits:
            best = min(fits, key=lambda k: sizes[k])
            groups[best].append(scope)
            unions[best].update(scope)
        else:
            groups.append([scope])
            unions.append(set(scope))
    result = []
    for group, union in zip(groups, unions, strict=True):
        whole = tuple(sorted(union))
        table = np.zeros(shape_of(space, whole))
        for scope in group:
            table += np.expand_dims(summed[scope], [i for i, column in enumerate(whole) if column not in scope])
        result.append((whole, table))
    return result


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
