"""SubNets: assignments of all variables, in canonical form.

In *canonical form* the variables of removed blocks stand at their default, so that one network has one assignment.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autotailor.ir.errors import IllegalSubNetError
from autotailor.ir.space.gate import Gate
from autotailor.ir.space.variable import Choice, Modification, Space

IntArray = npt.NDArray[np.int64]


def canonical(space: Space, indices: npt.ArrayLike) -> IntArray:
    """Canonical form of choice indices ``[n, variables]``: a variable whose gate is closed stands at its default."""
    array = np.array(indices, dtype=np.int64, ndmin=2)
    if array.ndim != 2 or array.shape[1] != len(space):
        raise IllegalSubNetError(f"an array of SubNets has shape [n, {len(space)}], not {list(array.shape)}")
    limits = np.array([len(v.choices) for v in space])
    if ((array < 0) | (array >= limits)).any():
        row, column = np.argwhere((array < 0) | (array >= limits))[0]
        variable = space.variables[column]
        raise IllegalSubNetError(
            f"SubNet {row}: choice index {array[row, column]} of {variable.name} "
            f"is outside 0..{len(variable.choices) - 1}"
        )
    for column, variable in enumerate(space):
        if variable.gate is not None:
            array[~variable.gate.is_open(space.positions, array), column] = variable.default
    return array


@dataclass(frozen=True)
class SubNet:
    """One assignment of a space in canonical form, which equality, id and JSON follow."""

    space: Space
    indices: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "indices", tuple(int(i) for i in canonical(self.space, self.indices)[0]))

    def __getitem__(self, variable: str) -> Choice:
        """Choice of a variable."""
        return self.space[variable].choices[self.indices[self.space.positions[variable]]]

    def __hash__(self) -> int:
        return hash(self.indices)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SubNet) and self.indices == other.indices and self.space == other.space

    def opens(self, gate: Gate | None) -> bool:
        """Whether a gate is open; what has no gate is always there."""
        return gate is None or bool(gate.is_open(self.space.positions, self.to_array()[None])[0])

    @property
    def assignment(self) -> dict[str, Choice]:
        """Variable name to choice, in the space's order."""
        return {v.name: v.choices[i] for v, i in zip(self.space, self.indices, strict=True)}

    @property
    def modifications(self) -> tuple[Modification, ...]:
        """The choices that differ from the unmodified network (paper, eq. 1)."""
        return tuple(
            Modification(v.name, v.choices[i]) for v, i in zip(self.space, self.indices, strict=True) if i != v.default
        )

    @property
    def id(self) -> str:
        """Twelve hexadecimal digits of the SHA-256 of ``to_json``."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:12]

    def transform(self, modification: Modification) -> SubNet:
        """The SubNet with one more modification applied (paper, section 4.1.1)."""
        position = self.space.positions[self.space[modification.variable].name]
        index = self.space[modification.variable].index(modification.choice)
        return SubNet(self.space, (*self.indices[:position], index, *self.indices[position + 1 :]))

    def to_json(self) -> str:
        """JSON: an object of all variables and their choices, in the space's order."""
        return json.dumps(self.assignment, separators=(",", ":"))

    @classmethod
    def from_json(cls, space: Space, text: str) -> SubNet:
        """Reads ``to_json``; variables left out stand at their default."""
        try:
            assignment = json.loads(text)
        except json.JSONDecodeError as error:
            raise IllegalSubNetError(f"a SubNet is a JSON object of variables and choices: {error}") from error
        if not isinstance(assignment, dict):
            raise IllegalSubNetError("a SubNet is a JSON object of variables and choices")
        return cls.from_assignment(space, assignment)

    @classmethod
    def from_assignment(cls, space: Space, assignment: Mapping[str, Choice]) -> SubNet:
        """A SubNet from variable names and choices; variables left out stand at their default.

        Raises:
            IllegalSubNetError: the assignment is no mapping.
            SpaceError: a variable or a choice is unknown.
        """
        if not isinstance(assignment, Mapping):
            raise IllegalSubNetError(f"a SubNet is a mapping of variables to choices, not {assignment!r}")
        indices = [v.default for v in space]
        for name, choice in assignment.items():
            variable = space[name]
            indices[space.positions[name]] = variable.index(choice)
        return cls(space, tuple(indices))

    def to_array(self) -> IntArray:
        """Choice indices ``[variables]``."""
        return np.array(self.indices, dtype=np.int64)

    @classmethod
    def from_array(cls, space: Space, array: Sequence[int] | IntArray) -> SubNet:
        """A SubNet from choice indices ``[variables]``."""
        return cls(space, tuple(int(i) for i in array))


def stack(subnets: Iterable[SubNet]) -> IntArray:
    """Choice indices ``[n, variables]`` of many SubNets."""
    return np.stack([subnet.to_array() for subnet in subnets])


def largest(space: Space) -> SubNet:
    """The unmodified network."""
    return SubNet(space, tuple(v.default for v in space))


def smallest(space: Space) -> SubNet:
    """Every variable at the choice that leaves least of the network."""
    return SubNet(space, tuple(v.least for v in space))


def sample(space: Space, rng: random.Random | np.random.Generator) -> SubNet:
    """A SubNet drawn uniformly from the *distinct* SubNets of the space.

    A depth is drawn with a weight equal to the number of assignments of the blocks that it keeps.
    """
    indices: list[int] = []
    for variable in space:
        indices.append(_draw(rng, space.completions(variable.name, indices)))
    return SubNet(space, tuple(indices))


def sample_distinct(
    space: Space, count: int, rng: random.Random | np.random.Generator, first: Iterable[SubNet] = ()
) -> tuple[SubNet, ...]:
    """The first SubNets and different ones, drawn as ``sample`` draws; all of a space of no more than ``count``."""
    subnets = dict.fromkeys(first)
    while len(subnets) < min(count, space.num_distinct):
        subnets[sample(space, rng)] = None
    return tuple(subnets)


def _draw(rng: random.Random | np.random.Generator, weights: list[int]) -> int:
    """Index drawn with probability proportional to its (possibly huge) integer weight."""
    point = int(rng.random() * 2**53) * sum(weights) >> 53  # no float holds every sum
    return next(index for index, end in enumerate(itertools.accumulate(weights)) if point < end)
