"""Variables and the space they span.

A *variable* is one place where the SuperNet may change; a *modification* is one variable set to one
choice (paper, section 4.2.2). The variables of a block that a depth removed say nothing: they are *gated*, and
a SubNet keeps them at their default.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from autotailor.ir.errors import SpaceError
from autotailor.ir.space.gate import Gate

Number = int | float
Choice = Number | str
Rest = tuple[int, tuple[tuple[str, int], ...]]
"""Variables of a tie from a position on, and the choices before it that they ask for."""


def shown(choice: Choice) -> str:
    """A choice for people: numbers with six digits at most."""
    return choice if isinstance(choice, str) else f"{choice:g}"


def as_shown(written: object) -> str:
    """A table's cell, a number or a text, as ``shown`` writes the choice."""
    try:
        return shown(float(str(written)))
    except ValueError:
        return str(written)


@dataclass(frozen=True)
class Variable:
    """One place where the SuperNet may change.

    Attributes:
        name: for people and files: ``resolution``, ``stage3.depth``, ``block7.expand_ratio``.
        kind: what it sets: ``resolution``, ``depth``, ``width``, ``expand_ratio`` ...
        choices: numbers, rising, or names; distinct; the unmodified network is among them.
        default: index of the unmodified choice.
        gate: open where the variable says something; None where it always does.
        owner: name of the stage or block that it sets something of, ``stem`` or ``head``; empty for the whole network.
        least: index of the choice that leaves least of the network.
    """

    name: str
    kind: str
    choices: tuple[Choice, ...]
    default: int
    gate: Gate | None = None
    owner: str = ""
    least: int = 0

    def __post_init__(self) -> None:
        if len(set(self.choices)) != len(self.choices) or not self.choices:
            raise SpaceError(f"variable {self.name}: choices {self.choices} must be distinct and at least one")
        if not 0 <= self.default < len(self.choices):
            raise SpaceError(f"variable {self.name}: default index {self.default} is outside its choices")
        if not 0 <= self.least < len(self.choices):
            raise SpaceError(f"variable {self.name}: index {self.least} of its least choice is outside its choices")

    @property
    def is_ordered(self) -> bool:
        """Whether neighbouring choices are alike; names are not."""
        return not any(isinstance(choice, str) for choice in self.choices)

    def index(self, choice: Choice) -> int:
        """Index of a choice; raises SpaceError listing the choices when it is none of them."""
        try:
            return self.choices.index(choice)
        except ValueError:
            raise SpaceError(
                f"variable {self.name}: {choice!r} is not one of its choices {list(self.choices)}"
            ) from None

    def keeping(self, choices: Sequence[Choice]) -> Variable:
        """The variable with some of its choices, the unmodified one among them."""
        places = [self.index(choice) for choice in choices]
        nearest = min(range(len(places)), key=lambda i: abs(places[i] - self.least))
        return replace(self, choices=tuple(choices), default=places.index(self.default), least=nearest)

    def read(self, written: object) -> Choice | None:
        """The choice that a table's cell stands for, a number or a text; None where it is none of the choices."""
        return next((choice for choice in self.choices if shown(choice) == as_shown(written)), None)


@dataclass(frozen=True)
class Modification:
    """One variable set to one choice."""

    variable: str
    choice: Choice

    def __str__(self) -> str:
        """For people."""
        return f"{shown(self.choice)} of {self.variable}"


@dataclass(frozen=True)
class Space:
    """All variables of a SuperNet, in the order that arrays and JSON have.

    Attributes:
        variables: names are distinct; a gate asks variables that stand before what it gates.
        merged: (variable, requested choice, kept choice) where rounding made two choices equal.
    """

    variables: tuple[Variable, ...]
    merged: tuple[tuple[str, Choice, Choice], ...] = field(default=())

    def __post_init__(self) -> None:
        if len(self.positions) != len(self.variables):
            raise SpaceError("variable names of a space must be distinct")
        for variable in self.variables:
            if variable.gate is not None:
                self._check_gate(variable.name, variable.gate)

    def _check_gate(self, owner: str, gate: Gate) -> None:
        """Refuses a gate over variables that stand behind what they gate, or that have other choices."""
        for name, choices in zip(gate.variables, gate.shape, strict=True):
            if name not in self.positions or self.positions[name] >= self.positions[owner]:
                raise SpaceError(f"variable {owner}: its gate asks {name}, expected a variable that stands before it")
            if (own := len(self[name].choices)) != choices:
                raise SpaceError(f"variable {owner}: its gate knows {choices} choices of {name}, which has {own}")

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
            names = ", ".join(self.positions) or "none"
            raise SpaceError(f"unknown variable {name!r}; the space has: {names}") from None

    def find(self, owner: str, kind: str) -> Variable | None:
        """The variable of a kind that a stage or block owns; None where that never changes."""
        return self._by_owner.get((owner, kind))

    @cached_property
    def _by_owner(self) -> dict[tuple[str, str], Variable]:
        return {(variable.owner, variable.kind): variable for variable in self.variables}

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
        tied = {variable.name for tie in self.ties for variable in tie.variables}
        free = [len(v.choices) for v in self.variables if v.name not in tied]
        return math.prod(free) * math.prod(tie.count for tie in self.ties)

    @cached_property
    def ties(self) -> tuple[Tie, ...]:
        """Groups of variables that gates tie together; each variable is in one tie at most."""
        groups: list[set[str]] = []
        for variable in self.variables:
            if variable.gate is not None:
                tied = {variable.name, *variable.gate.variables}
                apart = [group for group in groups if not group & tied]
                groups = [*apart, tied.union(*(group for group in groups if group & tied))]
        return tuple(Tie(tuple(v for v in self.variables if v.name in group)) for group in groups)

    def completions(self, name: str, chosen: Sequence[int]) -> list[int]:
        """Number of distinct SubNets with each choice of a variable, up to a common factor.

        Args:
            name: of the variable.
            chosen: choice indices of the variables before it, in the space's order.
        """
        for tie in self.ties:
            if name in tie.asked:
                before = zip(self.variables[: self.positions[name]], chosen, strict=False)
                return tie.completions(name, {variable.name: index for variable, index in before})
        return [1] * len(self[name].choices)


@dataclass(frozen=True, eq=False)
class Tie:
    """Variables that gates tie together, whose distinct assignments are counted by elimination.

    A variable behind the last gate that asks it no longer matters: chains of gates are counted as fast as short ones.

    Attributes:
        variables: in the space's order; a gate asks variables that stand before what it gates.
    """

    variables: tuple[Variable, ...]

    @cached_property
    def asked(self) -> frozenset[str]:
        """Names of the variables that gates ask."""
        return frozenset(name for v in self.variables if v.gate is not None for name in v.gate.variables)

    @property
    def count(self) -> int:
        """Number of distinct assignments."""
        return self._count((0, ()))

    def completions(self, name: str, chosen: Mapping[str, int]) -> list[int]:
        """Number of distinct assignments with each choice of a variable that gates ask, under choices before it."""
        place = next(i for i, variable in enumerate(self.variables) if variable.name == name)
        fixed = tuple((each, chosen[each]) for each in self._needed[place])
        return [0 if after is None else self._count(after) for after in self._by_choice((place, fixed))]

    @cached_property
    def _needed(self) -> tuple[tuple[str, ...], ...]:
        """For each position the variables before it that a gate there or behind it asks."""
        needed: list[tuple[str, ...]] = [()]
        names: set[str] = set()
        for variable in reversed(self.variables):
            names = (names - {variable.name}) | set(variable.gate.variables if variable.gate is not None else ())
            needed.append(tuple(sorted(names)))
        return tuple(reversed(needed))

    def _count(self, rest: Rest) -> int:
        """Distinct assignments of what is left; what is left behind it is counted first, by a stack of its own."""
        waiting = [] if rest in self._counts else [rest]
        while waiting:
            behind = [after for after in self._by_choice(waiting[-1]) if after is not None]
            if unknown := [after for after in behind if after not in self._counts]:
                waiting.extend(unknown)
            else:
                self._counts[waiting.pop()] = sum(self._counts[after] for after in behind)
        return self._counts[rest]

    def _by_choice(self, rest: Rest) -> list[Rest | None]:
        """What each choice of the first variable leaves; where it is closed, only its default does."""
        place, fixed = rest
        variable, before = self.variables[place], dict(fixed)
        is_open = variable.gate is None or variable.gate.opens(before)
        behind: list[Rest | None] = [None] * len(variable.choices)
        for index in range(len(behind)) if is_open else (variable.default,):
            chosen = {**before, variable.name: index}
            behind[index] = place + 1, tuple((each, chosen[each]) for each in self._needed[place + 1])
        return behind

    @cached_property
    def _counts(self) -> dict[Rest, int]:
        return {(len(self.variables), ()): 1}
