"""Sizes of dimensions over all joint choices of some variables at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from autotailor.ir.dimensions.dimension import Atom, Dimension, Sizes
from autotailor.ir.space.architecture import Architecture
from autotailor.ir.space.subnet import IntArray


class Grid:
    """Sizes over all joint choices at once: an axis for each variable, and one for derived sums where there are any."""

    def __init__(
        self, architecture: Architecture, variables: Sequence[str], known: Mapping[Atom, IntArray], derived: int = 0
    ) -> None:
        self._architecture = architecture
        self._axes = {name: i for i, name in enumerate(variables)}
        self._known: dict[Atom, IntArray] = dict(known)
        lengths = [len(architecture.space[name].choices) for name in variables]
        self.shape = (*lengths, derived) if derived else tuple(lengths)

    def evaluate(self, dimension: Dimension) -> IntArray:
        """Size of a dimension, in a shape that broadcasts to the grid's."""
        return np.asarray(dimension.size(cast(Sizes, self._size)), dtype=np.int64)

    def _size(self, atom: Atom) -> IntArray:
        if atom not in self._known:
            self._known[atom] = self._governed(atom)
        return self._known[atom]

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
