"""From an assignment of variables to the size of every atom: the active architecture."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

from autotailor.ir.dimensions.dimension import Atom, Dimension, Sizes
from autotailor.ir.errors import IllegalSubNetError
from autotailor.ir.space.variable import Choice, Number, Space

Assignment = Mapping[str, Choice]


def round_width(value: float, divisor: int) -> int:
    """Rounds a width to a multiple of a divisor, and loses no more than a tenth of it (Sandler et al., 2018)."""
    rounded = max(divisor, int((value + divisor / 2) // divisor) * divisor)
    return rounded + divisor if rounded < 0.9 * value else rounded


@dataclass(frozen=True)
class Fixed:
    """The atom's size is the choice itself: the resolution."""

    variable: str

    def size(self, atom: Atom, assignment: Assignment, sizes: Sizes) -> int:
        return int(assignment[self.variable])

    def bases(self) -> tuple[Dimension, ...]:
        return ()

    def substituted(self, replacements: Mapping[Any, Dimension]) -> Fixed:
        return self


@dataclass(frozen=True)
class Scaled:
    """The atom's size is a ratio of a width, rounded.

    Attributes:
        variable: the variable whose choice is the ratio.
        base: the width that the ratio multiplies; None for the atom's own meta width.
        divisor: of the rounding, in channels.
        granule: channels that one unit of the atom stands for (more than 1 for groups of channels).
        default: the unmodified ratio; with the base at its meta size the atom has exactly its meta width.
        share: the atom's part of the scaled width, where one ratio scales several widths.
    """

    variable: str
    base: Dimension | None
    divisor: int
    granule: int
    default: Choice
    share: float = 1.0

    def size(self, atom: Atom, assignment: Assignment, sizes: Sizes) -> int:
        ratio = cast(Number, assignment[self.variable])
        base = atom.meta * self.granule if self.base is None else self.base.size(sizes)
        whole = self.base is None or base == self.base.meta
        if ratio == self.default and whole:
            return atom.meta
        channels = round_width(ratio * base * self.share, math.lcm(self.divisor, self.granule))
        return min(atom.meta, max(1, channels // self.granule))

    def bases(self) -> tuple[Dimension, ...]:
        return () if self.base is None else (self.base,)

    def substituted(self, replacements: Mapping[Any, Dimension]) -> Scaled:
        return self if self.base is None else replace(self, base=self.base.substituted(replacements))


@dataclass(frozen=True)
class Listed:
    """The atom's size stands beside each choice: the rank of a pair of factors. What is first is kept first.

    Attributes:
        variable: the variable whose choices have sizes.
        listed: choices and their sizes; under any other choice the atom has its meta size, or is not there.
    """

    variable: str
    listed: tuple[tuple[Choice, int], ...]

    def size(self, atom: Atom, assignment: Assignment, sizes: Sizes) -> int:
        return dict(self.listed).get(assignment[self.variable], atom.meta)

    def bases(self) -> tuple[Dimension, ...]:
        return ()

    def substituted(self, replacements: Mapping[Any, Dimension]) -> Listed:
        return self


AtomRule = Fixed | Scaled | Listed


@dataclass(frozen=True, eq=False)
class Architecture:
    """A space, and the sizes that its variables give to atoms; an atom without a rule keeps its meta size."""

    space: Space
    rules: Mapping[Atom, AtomRule] = field(default_factory=dict)

    @cached_property
    def sliced(self) -> tuple[Atom, ...]:
        """The atoms that variables change, without those whose order says what is kept (``Listed``)."""
        return tuple(atom for atom, rule in self.rules.items() if not isinstance(rule, Listed))

    def sizes(self, assignment: Assignment) -> Sizes:
        """Active size of atoms under an assignment of (at least) the variables they depend on."""
        sizes: dict[Atom, int] = {}

        def size(atom: Atom) -> int:
            if atom not in sizes:
                rule = self.rules.get(atom)
                sizes[atom] = atom.meta if rule is None else rule.size(atom, assignment, size)
            return sizes[atom]

        return size

    def substituted(self, replacements: Mapping[Any, Dimension]) -> Architecture:
        """The same architecture with some expressions replaced in the bases of ratios."""
        return replace(self, rules={atom: rule.substituted(replacements) for atom, rule in self.rules.items()})

    def variables(self, *dimensions: Dimension) -> tuple[str, ...]:
        """Variables that dimensions depend on, in the space's order."""
        names: set[str] = set()
        for dimension in dimensions:
            for atom in dimension.atoms():
                names |= self._governing(atom)
        return tuple(sorted(names, key=self.space.positions.__getitem__))

    def _governing(self, atom: Atom) -> frozenset[str]:
        """Variables that an atom depends on, by itself or through the base of its ratio."""
        variables = self._governors.get(atom)
        if variables is None:
            rule = self.rules.get(atom)
            bases = () if rule is None else (inner for base in rule.bases() for inner in base.atoms())
            own = () if rule is None else (rule.variable,)
            variables = self._governors[atom] = frozenset(own).union(*(self._governing(inner) for inner in bases))
        return variables

    @cached_property
    def _governors(self) -> dict[Atom, frozenset[str]]:
        return {}

    def active(self, dimension: Dimension, sizes: Sizes, owner: str) -> int:
        """Active size of one dimension of the tensor ``owner``; refuses sizes below one with a reason."""
        return check_size(dimension, dimension.size(sizes), owner)


def check_size(dimension: Dimension, size: int, owner: str) -> int:
    """The active size of a dimension of the tensor ``owner``; refuses sizes below one with a reason."""
    if size < 1:
        raise IllegalSubNetError(f"{owner}: nothing is left of a dimension of {dimension.meta}; it became {size}")
    return size
