"""Joint sizes: every combination of sizes that some dimensions can take together.

The sizes that one operator sees depend on few variables, whose joint choices are written out as a table. The running
width of a DenseNet's concatenations is a sum over dozens of variables. Such a sum becomes a *derived* variable, whose
values are found by dynamic programming over the sums that its parts can reach. With 16 layers of 16, 24 or 32
channels, 3 ** 16 joint choices have 33 sums.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from autotailor.ir.dimensions.dimension import Atom, Dimension, Sizes, Sum
from autotailor.ir.errors import SpaceError
from autotailor.ir.space.architecture import Architecture
from autotailor.ir.space.derived import Contribution, Derived
from autotailor.ir.space.subnet import IntArray

TABLE_LIMIT = 20_000  # a table of up to so many joint choices has no derived variables
HARD_LIMIT = 2_000_000
LONG_SUM = 2  # sums over more variables than this are derived


class CoupledError(SpaceError):
    """Some dimensions have too many joint choices; ``variables`` are those that the dimensions depend on."""

    def __init__(self, message: str, variables: Sequence[str]) -> None:
        super().__init__(message)
        self.variables = tuple(variables)


@dataclass(frozen=True, eq=False)
class JointSizes:
    """Sizes of some dimensions under all joint choices.

    Attributes:
        variables: names; axis i of ``rows`` runs over the choices of ``variables[i]``.
        derived: sums over many variables, whose values the last axis of ``rows`` runs over; None where there are none.
        sizes: distinct joint sizes ``[n, dimensions]``.
        rows: the row of ``sizes`` that each joint choice has.
    """

    variables: tuple[str, ...]
    derived: Derived | None
    sizes: IntArray
    rows: IntArray


def joint_sizes(architecture: Architecture, dimensions: Sequence[Dimension]) -> JointSizes:
    """All sizes that dimensions can take together.

    Raises:
        CoupledError: the dimensions couple too many variables, and not only through sums.
    """
    variables = architecture.variables(*dimensions)
    if _count(architecture, variables) <= TABLE_LIMIT:
        return _tabulate(architecture, variables, dimensions, None, {})
    sums, explicit, derived = _plan(architecture, dimensions)
    placeholders = _placeholders(sums)
    fixed = _contribution(architecture, explicit, sums, constants=True).table
    added = np.zeros((1, len(sums)), dtype=np.int64) if derived is None else derived.values
    values = fixed[..., None, :] + added
    sum_sizes = {atom: values[..., i] if derived else values[..., 0, i] for i, atom in enumerate(placeholders.values())}
    dimensions = [dimension.substituted(placeholders) for dimension in dimensions]
    return _tabulate(architecture.substituted(placeholders), explicit, dimensions, derived, sum_sizes)


def coupling(architecture: Architecture, dimensions: Sequence[Dimension]) -> CoupledError | None:
    """Why joint sizes of dimensions cannot be listed; None where they can."""
    if _count(architecture, architecture.variables(*dimensions)) <= TABLE_LIMIT:
        return None
    try:
        _plan(architecture, dimensions)
    except CoupledError as error:
        return error
    return None


def _plan(
    architecture: Architecture, dimensions: Sequence[Dimension]
) -> tuple[tuple[Sum, ...], tuple[str, ...], Derived | None]:
    """Long sums in dimensions, the variables that have axes of their own, and the sums over all other variables.

    Raises:
        CoupledError: too many joint choices are left.
    """
    sums = _long_sums(architecture, dimensions)
    placeholders = _placeholders(sums)
    shorter = architecture.substituted(placeholders)
    rest = shorter.variables(*(dimension.substituted(placeholders) for dimension in dimensions))
    explicit, groups = _partition(architecture, sums, rest)
    _check_limit(architecture, explicit)
    derived = Derived.of([_contribution(architecture, group, sums) for group in groups]) if groups else None
    if derived is not None:
        _check_limit(architecture, explicit, derived)
    return sums, explicit, derived


def _placeholders(sums: Sequence[Sum]) -> dict[Dimension, Atom]:
    return {long: Atom(f"sum{i}", long.meta) for i, long in enumerate(sums)}


def _count(architecture: Architecture, variables: Iterable[str]) -> int:
    return math.prod(len(architecture.space[name].choices) for name in variables)


def _check_limit(architecture: Architecture, variables: Sequence[str], derived: Derived | None = None) -> None:
    sums = 1 if derived is None else len(derived.values)
    if (count := _count(architecture, variables) * sums) > HARD_LIMIT:
        variables = (*variables, *(() if derived is None else derived.variables))
        raise CoupledError(
            f"one operator depends on {len(variables)} variables jointly ({', '.join(variables[:6])} ...), with "
            f"{count} choices together; offer fewer choices or skip some of these variables",
            variables,
        )


def _long_sums(architecture: Architecture, dimensions: Iterable[Dimension]) -> tuple[Sum, ...]:
    """Outermost sums over many variables, in dimensions and in the bases of the dimensions' atoms."""
    sums: dict[Sum, None] = {}
    pending = list(dimensions)
    seen: set[Atom] = set()
    while pending:
        dimension = pending.pop()
        if isinstance(dimension, Sum) and len(architecture.variables(dimension)) > LONG_SUM:
            sums[dimension] = None
        elif isinstance(dimension, Atom) and dimension not in seen:
            seen.add(dimension)
            rule = architecture.rules.get(dimension)
            pending.extend(rule.bases() if rule else ())
        pending.extend(() if dimension in sums else dimension.children())
    return tuple(sums)


def _partition(
    architecture: Architecture, sums: Sequence[Sum], explicit: Sequence[str]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Variables that have axes of their own, and disjoint groups of the variables that only add to sums.

    Where a part of a sum depends on both sorts, all variables of the part get axes of their own.
    """
    parts = [set(architecture.variables(part)) for long in sums for part in _addends(long)]
    kept = set(explicit)
    while mixed := [part for part in parts if part & kept and part - kept]:
        kept.update(*mixed)
    groups: list[set[str]] = []
    for part in parts:
        if part and not part & kept:
            touching = [group for group in groups if group & part]
            groups = [group for group in groups if not group & part] + [part.union(*touching)]
    names = [variable.name for variable in architecture.space]
    return tuple(n for n in names if n in kept), [tuple(n for n in names if n in group) for group in groups]


def _addends(dimension: Dimension) -> Iterable[Dimension]:
    """Parts of a sum, those of sums inside it included."""
    if not isinstance(dimension, Sum):
        return (dimension,)
    return (addend for part in dimension.parts for addend in _addends(part))


def _contribution(
    architecture: Architecture, variables: tuple[str, ...], sums: Sequence[Sum], constants: bool = False
) -> Contribution:
    """The contribution of a group of variables to sums, with or without the parts that never change."""
    _check_limit(architecture, variables)
    grid = Grid(architecture, variables, {})
    scope = set(variables)
    table = np.zeros((*grid.shape, len(sums)), dtype=np.int64)
    for i, long in enumerate(sums):
        for part in _addends(long):
            own = set(architecture.variables(part))
            if own <= scope and (own or constants):
                table[..., i] += grid.evaluate(part)
    return Contribution(variables, table)


def _tabulate(
    architecture: Architecture,
    variables: tuple[str, ...],
    dimensions: Sequence[Dimension],
    derived: Derived | None,
    given_sizes: Mapping[Atom, IntArray],
) -> JointSizes:
    grid = Grid(architecture, variables, given_sizes, 0 if derived is None else len(derived.values))
    columns = [np.broadcast_to(grid.evaluate(dimension), grid.shape).ravel() for dimension in dimensions]
    sizes, rows = factorize(columns, math.prod(grid.shape))
    return JointSizes(variables, derived, sizes, rows.reshape(grid.shape))


class Grid:
    """Sizes over all joint choices at once: an axis for each variable, and one for derived sums where there are any."""

    def __init__(
        self, architecture: Architecture, variables: Sequence[str], sizes: Mapping[Atom, IntArray], derived: int = 0
    ) -> None:
        self._architecture = architecture
        self._axes = {name: i for i, name in enumerate(variables)}
        self._sizes: dict[Atom, IntArray] = dict(sizes)
        lengths = [len(architecture.space[name].choices) for name in variables]
        self.shape = (*lengths, derived) if derived else tuple(lengths)

    def evaluate(self, dimension: Dimension) -> IntArray:
        """Size of a dimension, in a shape that broadcasts to the grid's."""
        return np.asarray(dimension.size(cast(Sizes, self._size)), dtype=np.int64)

    def _size(self, atom: Atom) -> IntArray:
        if atom not in self._sizes:
            self._sizes[atom] = self._governed(atom)
        return self._sizes[atom]

    def _governed(self, atom: Atom) -> IntArray:
        """Size of an atom: its rule is asked once for each choice and each joint size of its base."""
        rule = self._architecture.rules.get(atom)
        if rule is None:
            return np.array(atom.meta)
        choices = self._architecture.space[rule.variable].choices
        axis = np.arange(len(choices)).reshape([-1 if n == rule.variable else 1 for n in self._names()])
        bases = list(dict.fromkeys(inner for base in rule.bases() for inner in base.atoms()))
        columns: Any = np.broadcast_arrays(axis, *(self._size(base) for base in bases))
        joint, rows = factorize([column.ravel() for column in columns], columns[0].size)
        sizes = [
            rule.size(
                atom, {rule.variable: choices[row[0]]}, dict(zip(bases, row[1:].tolist(), strict=True)).__getitem__
            )
            for row in joint
        ]
        return np.array(sizes, dtype=np.int64)[rows].reshape(columns[0].shape)

    def _names(self) -> tuple[str, ...]:
        return (*self._axes, "") if len(self.shape) > len(self._axes) else tuple(self._axes)


def factorize(columns: Sequence[IntArray], length: int) -> tuple[IntArray, IntArray]:
    """Distinct rows of some columns, and for each row its number among the distinct ones."""
    code = np.zeros(length, dtype=np.int64)
    for column in columns:
        values, inverse = np.unique(column, return_inverse=True)
        _, code = np.unique(code * len(values) + inverse.ravel(), return_inverse=True)
        code = code.ravel()
    _, first, code = np.unique(code, return_index=True, return_inverse=True)
    sizes = [np.asarray(column)[first] for column in columns]
    return np.stack(sizes, axis=-1) if sizes else np.zeros((1, 0), dtype=np.int64), code.ravel()
