"""Gates: whether a part of the network is there, as a small table over the variables that decide it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from autotailor.ir.errors import SpaceError

Table = bool | tuple["Table", ...]

MOST_ENTRIES = 8192
"""A larger table would be no small one."""


@dataclass(frozen=True)
class Gate:
    """A boolean table over the choices of a few variables: open where a part of the network is there.

    A block that a stage's depth removes first of all, with the depth's choices 0, 1 and 2 removed blocks::

        Gate(("stage1.depth",), (True, False, False))

    Whoever needs to know asks ``is_open``; only the table says for which choices a gate is open.

    Attributes:
        variables: names of the variables that decide.
        table: nested over their choices, the first variable outermost.
    """

    variables: tuple[str, ...]
    table: Table

    def __post_init__(self) -> None:
        if not 1 <= len(set(self.variables)) == len(self.variables):
            raise SpaceError(f"gate: expected distinct variables, at least one, got {list(self.variables)}")
        if len(self.shape) != len(self.variables):
            raise SpaceError(f"gate: expected a table over {list(self.variables)}, got one of {len(self.shape)} axes")
        if self._array.size > MOST_ENTRIES:
            raise SpaceError(
                f"gate: expected at most {MOST_ENTRIES} joint choices of {list(self.variables)}, got {self._array.size}"
            )

    def __and__(self, other: Gate) -> Gate:
        """The gate that is open where both are open."""
        return self if other == self else self._joined(other, np.logical_and)

    def __or__(self, other: Gate) -> Gate:
        """The gate that is open where one of both is open."""
        return self if other == self else self._joined(other, np.logical_or)

    def _joined(self, other: Gate, function: np.ufunc) -> Gate:
        names = tuple(dict.fromkeys((*self.variables, *other.variables)))
        sizes = {name: n for gate in (self, other) for name, n in zip(gate.variables, gate.shape, strict=True)}
        grid = np.indices([sizes[name] for name in names]).reshape(len(names), -1).T
        positions = {name: i for i, name in enumerate(names)}
        is_open = function(self.is_open(positions, grid), other.is_open(positions, grid))
        return Gate.of(names, is_open.reshape([sizes[name] for name in names]))

    @property
    def inverse(self) -> Gate:
        """The gate that is open where this one is closed."""
        return Gate.of(self.variables, ~self._array)

    def keeping(self, kept: Mapping[str, Sequence[int]]) -> Gate:
        """The gate over some of the choices of its variables, by the places of the choices."""
        table = self._array
        for axis, name in enumerate(self.variables):
            table = table.take(kept[name], axis)
        return Gate.of(self.variables, table)

    @property
    def reduced(self) -> Gate | bool:
        """The gate over those variables alone whose choices matter; whether it is open where none does."""
        table, names = self._array, list(self.variables)
        for axis in reversed(range(table.ndim)):
            first = table.take([0], axis)
            if (table == first).all():
                table = first.squeeze(axis)
                del names[axis]
        return Gate.of(tuple(names), table) if names else bool(table)

    @classmethod
    def of(cls, variables: tuple[str, ...], table: npt.NDArray[np.bool_]) -> Gate:
        """A gate over an array of truth values, one axis for each variable."""
        return cls(variables, _nested(table.tolist()))

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of choices of each variable."""
        return self._array.shape

    def is_open(self, positions: Mapping[str, int], subnets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether it is open in SubNets.

        Args:
            positions: variable name to column.
            subnets: choice indices ``[n, variables]``.

        Returns:
            ``[n]``.
        """
        return self._array[tuple(subnets[:, positions[name]] for name in self.variables)]

    def opens(self, chosen: Mapping[str, int]) -> bool:
        """Whether it is open under the choice indices of its variables."""
        return bool(self._array[tuple(chosen[name] for name in self.variables)])

    @cached_property
    def openings(self) -> npt.NDArray[np.int64]:
        """The joint choices that open it, as choice indices ``[n, variables of the gate]``."""
        return np.argwhere(self._array).astype(np.int64)

    @cached_property
    def _array(self) -> npt.NDArray[np.bool_]:
        return np.array(self.table, dtype=bool)


def both(a: Gate | None, b: Gate | None) -> Gate | None:
    """The gate that is open where two gates are open; what has no gate is always there."""
    if a is None or b is None:
        return b if a is None else a
    return a & b


def together(a: Gate | bool, b: Gate | bool) -> Gate | bool:
    """Where two things are there at once; each always, never, or where a gate is open."""
    if isinstance(a, bool):
        return b if a else False
    return (a if b else False) if isinstance(b, bool) else (a & b).reduced


def either(a: Gate | bool, b: Gate | bool) -> Gate | bool:
    """Where one of two things is there; each always, never, or where a gate is open."""
    if isinstance(a, bool):
        return True if a else b
    return (True if b else a) if isinstance(b, bool) else (a | b).reduced


def _nested(values: object) -> Table:
    """Nested lists of truth values as the tuples of a gate's table."""
    return tuple(_nested(value) for value in values) if isinstance(values, list) else bool(values)
