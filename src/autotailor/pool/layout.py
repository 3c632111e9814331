"""The places of all members' slices: of each tensor, what some member takes of it is stored once."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.artifacts import file_digest
from autotailor.ir.dimensions.dimension import Indices
from autotailor.pool.plan import Cut, Planned, StorageTag, ranges_of
from autotailor.serving.errors import PoolError
from autotailor.serving.files import NORMS, WEIGHTS, File, Norms, Piece, Slice, Tag
from autotailor.serving.files.index import PRECISIONS

ALIGNMENT = 64
"""Bytes; a cache line, so that no vector load crosses one."""

Array = npt.NDArray[Any]
Key = tuple[str, tuple[int, ...]]
"""A tensor's name and an order of its axes: a tensor that is read in two orders is stored in both."""


class Stored:
    """Arrays of one type, one behind the other, each at a multiple of ``ALIGNMENT`` bytes."""

    def __init__(self, kind: str) -> None:
        self.kind = np.dtype(kind)
        self.arrays: list[Array] = []
        self.size = 0
        self._offsets: dict[str, int] = {}

    def add(self, array: Array) -> int:
        """The offset of an array in bytes; equal arrays are stored once."""
        stored = np.ascontiguousarray(array, dtype=self.kind)
        key = hashlib.sha256(stored.tobytes()).hexdigest()
        if key not in self._offsets:
            self._offsets[key] = self.size
            self.arrays.append(stored)
            self.size += -(-stored.nbytes // ALIGNMENT) * ALIGNMENT
        return self._offsets[key]

    def write(self, path: Path) -> File:
        """Writes the file; returns its size and hash."""
        with path.open("wb") as stream:
            for array in self.arrays:
                stream.write(array.tobytes())
                stream.write(bytes(-array.nbytes % ALIGNMENT))
        return File(self.size, file_digest(path))


class Shared:
    """``weights.bin`` and ``norms.bin``.

    Attributes:
        precision: of ``weights.bin``: fp32, or fp16 for half of the size.
    """

    def __init__(self, precision: str = "fp32") -> None:
        if precision not in PRECISIONS:
            raise PoolError(f"pool.precision is {precision}, expected one of {', '.join(PRECISIONS)}")
        self.precision = precision
        self._weights, self._norms = Stored(PRECISIONS[precision]), Stored("<f4")
        self._tensors: dict[str, int] = {}

    def tensor(self, name: str, tensor: Array) -> int:
        """The offset of a tensor in ``weights.bin``.

        Args:
            name: of the tensor; a name stands for one tensor.
            tensor: in single precision.

        Raises:
            PoolError: the tensor has a value that the precision cannot hold.
        """
        if name not in self._tensors:
            with np.errstate(over="ignore"):
                is_finite = bool(np.isfinite(tensor.astype(self._weights.kind)).all())
            if not is_finite:
                raise PoolError(
                    f"tensor {name} has a value of {np.abs(tensor).max():.3g}, which {self.precision} cannot hold: "
                    "set pool.precision to fp32"
                )
            self._tensors[name] = self._weights.add(tensor)
        return self._tensors[name]

    def vector(self, values: Array) -> int:
        """The offset of some numbers in ``norms.bin``."""
        return self._norms.add(values.reshape(-1))

    @property
    def stored(self) -> tuple[Array, Array]:
        """What is in the two files so far, as a device reads them: flat, of their types."""
        return _flat(self._weights), _flat(self._norms)

    def write(self, folder: Path) -> tuple[File, File]:
        """Writes both files into a folder."""
        return self._weights.write(folder / WEIGHTS), self._norms.write(folder / NORMS)


def _flat(stored: Stored) -> Array:
    padding = [np.zeros(-array.nbytes % ALIGNMENT // stored.kind.itemsize, stored.kind) for array in stored.arrays]
    parts = [part.reshape(-1) for pair in zip(stored.arrays, padding, strict=True) for part in pair]
    return np.concatenate(parts) if parts else np.empty(0, stored.kind)


def lay_out(
    plans: Mapping[str, Sequence[Planned]], tensors: Mapping[str, Array], shared: Shared
) -> dict[str, tuple[Piece, ...]]:
    """The pieces of each member, whose numbers are put into the shared files.

    Args:
        plans: of the members, by name.
        tensors: of the SuperNet, by name.
        shared: the files, which get what the members read.

    Returns:
        Members' names to their pieces.

    Raises:
        PoolError: a tensor has a value that the precision of the files cannot hold.
    """
    kept = _kept(plans)
    stored = {key: tensors[key[0]].transpose(key[1])[np.ix_(*taken)] for key, taken in kept.items()}
    offsets = {key: shared.tensor(f"{key[0]} {key[1]}", array) for key, array in stored.items()}
    return {name: tuple(_piece(each, kept, offsets, shared) for each in plan) for name, plan in plans.items()}


def _kept(plans: Mapping[str, Sequence[Planned]]) -> dict[Key, tuple[Indices, ...]]:
    """For each axis of each tensor the indices that some member takes, rising."""
    kept: dict[Key, tuple[Indices, ...]] = {}
    for cut in (each for plan in plans.values() for each in plan if isinstance(each, Cut)):
        key = cut.tensor, cut.axes
        before = kept.get(key, cut.take)
        kept[key] = tuple(np.union1d(*pair) for pair in zip(before, cut.take, strict=True))
    return kept


def _piece(
    planned: Planned, kept: Mapping[Key, Sequence[Indices]], offsets: Mapping[Key, int], shared: Shared
) -> Piece:
    if isinstance(planned, StorageTag):
        return Tag(0)
    if not isinstance(planned, Cut):
        return Norms(shared.vector(planned.values), len(planned.values))
    key = planned.tensor, planned.axes
    take = tuple(ranges_of(np.searchsorted(*pair)) for pair in zip(kept[key], planned.take, strict=True))
    shape = tuple(len(indices) for indices in kept[key])
    if planned.scale is None:
        return Slice(offsets[key], shape, take)
    return Slice(offsets[key], shape, take, shared.vector(planned.scale), 1)
