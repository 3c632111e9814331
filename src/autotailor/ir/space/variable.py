"""Variables and the space they span.

A *variable* is one place where the SuperNet may change; a *modification* is one variable set to one
choice (paper, section 4.2.2). Blocks that a depth variable removed have no say: their variables are
*gated*, and a SubNet keeps them at their default.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from autotailor.ir.errors import SpaceError

Choice = int | float


@dataclass(frozen=True)
class Gate:
    """Present while ``variable`` (a stage depth) takes one of its first ``open_choices`` choices.

    Depth choices are ordered 0, 1, 2, ... blocks removed, so a block is present for a prefix of them.
    """

    variable: str
    open_choices: int

    def is_open(self, space: Space, subnets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether it is open, for choice indices ``[n, variables]``: ``[n]``."""
        return np.asarray(subnets[:, space.positions[self.variable]] < self.open_choices)


@dataclass(frozen=True)
class Variable:
    """One place where the SuperNet may change.

    Attributes:
        name: for instance ``resolution``, ``stage3.depth``, ``block7.expand_ratio``.
        kind: the last part of the name: ``resolution``, ``depth``, ``width``, ``expand_ratio`` ...
        choices: ordered, distinct; the unmodified network is among them.
        default: index of the unmodified choice.
        gate: when the variable has a say; None means always.
    """

    name: str
    kind: str
    choices: tuple[Choice, ...]
    default: int
    gate: Gate | None = None

    def __post_init__(self) -> None:
        if len(set(self.choices)) != len(self.choices) or not self.choices:
            raise SpaceError(f"variable {self.name}: choices {self.choices} must be distinct and at least one")
        if not 0 <= self.default < len(self.choices):
            raise SpaceError(f"variable {self.name}: default index {self.default} is outside its choices")

    def index(self, choice: Choice) -> int:
        """Index of a choice; raises SpaceError listing the choices when it is none of them."""
        try:
            return self.choices.index(choice)
        except ValueError:
            raise SpaceError(f"variable {self.name}: {choice!r} is none of its choices {list(self.choices)}") from None


@dataclass(frozen=True)
class Modification:
    """One variable set to one choice."""

    variable: str
    choice: Choice


@dataclass(frozen=True)
class Space:
    """All variables of a SuperNet, in the fixed order that arrays and JSON use.

    ``merged`` lists, per variable, requested choices that rounding made equal to a kept one.
    """

    variables: tuple[Variable, ...]
    merged: tuple[tuple[str, Choice, Choice], ...] = field(default=())

    def __post_init__(self) -> None:
        if len(self.positions) != len(self.variables):
            raise SpaceError("variable names of a space must be distinct")
        for variable in self.variables:
            if variable.gate is not None and variable.gate.variable not in self.positions:
                raise SpaceError(f"variable {variable.name}: its gate {variable.gate.variable} is not in the space")

    def __iter__(self) -> Iterator[Variable]:
        return iter(self.variables)

    def __len__(self) -> int:
        return len(self.variables)

    @cached_property
    def positions(self) -> dict[str, int]:
        """Variable name to its column in arrays."""
        return {variable.name: i for i, variable in enumerate(self.variables)}

    def __getitem__(self, name: str) -> Variable:
        try:
            return self.variables[self.positions[name]]
        except KeyError:
            known = ", ".join(self.positions) or "none"
            raise SpaceError(f"unknown variable {name!r}; the space has: {known}") from None

    def gated_by(self, depth: str) -> tuple[Variable, ...]:
        """Variables whose blocks the depth variable can remove."""
        return tuple(v for v in self.variables if v.gate is not None and v.gate.variable == depth)

    @property
    def num_modifications(self) -> int:
        """Number of (variable, choice) pairs, as the paper's Table 3 counts them."""
        return sum(len(v.choices) for v in self.variables)

    @property
    def num_variants(self) -> int:
        """Naive count: the product of all choices (paper, Table 3)."""
        return math.prod(len(v.choices) for v in self.variables)

    @property
    def num_distinct(self) -> int:
        """Number of distinct SubNets: choices inside removed blocks do not multiply."""
        free = [v for v in self.variables if v.gate is None and not self.gated_by(v.name)]
        total = math.prod(len(v.choices) for v in free)
        for depth in self.variables:
            if gated := self.gated_by(depth.name):
                total *= sum(self.open_variants(gated, i) for i in range(len(depth.choices)))
        return total

    @staticmethod
    def open_variants(gated: tuple[Variable, ...], depth_index: int) -> int:
        """Number of assignments of ``gated`` variables that have a say at one depth choice."""
        return math.prod(len(v.choices) for v in gated if v.gate is not None and depth_index < v.gate.open_choices)
