"""Gates: whether a part of the network is there, as a small table over the variables that decide it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from autotailor.ir.errors import SpaceError

Table = bool | tuple["Table", ...]

MOST_VARIABLES = 3
"""A table over more variables would be no small one."""


@dataclass(frozen=True)
class Gate:
    """A boolean table over the choices of at most three variables: open where a part of the network is there.

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
        if not 1 <= len(set(self.variables)) == len(self.variables) <= MOST_VARIABLES:
            raise SpaceError(f"gate: expected 1 to {MOST_VARIABLES} distinct variables, got {list(self.variables)}")
        if len(self.shape) != len(self.variables):
            raise SpaceError(f"gate: expected a table over {list(self.variables)}, got one of {len(self.shape)} axes")

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

    @cached_property
    def openings(self) -> npt.NDArray[np.int64]:
        """The joint choices that open it, as choice indices ``[n, variables of the gate]``."""
        return np.argwhere(self._array).astype(np.int64)

    @cached_property
    def _array(self) -> npt.NDArray[np.bool_]:
        return np.array(self.table, dtype=bool)
