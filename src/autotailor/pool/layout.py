"""The places of all members' slices: of each tensor, what some member takes of it is stored once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.ir.dimensions.dimension import Indices
from autotailor.pool.plan import Cut, Planned, StorageTag, ranges_of
from autotailor.pool.shared import Shared
from autotailor.serving.files import Norms, Piece, Slice, Tag

Array = npt.NDArray[Any]
Key = tuple[str, tuple[int, ...]]
"""A tensor's name and an order of its axes: a tensor that is read in two orders is stored in both."""


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
    offsets = {key: shared.tensor(f"{key[0]} {key[1]}", _stored(tensors[key[0]], key, kept[key])) for key in kept}
    return {name: tuple(_piece(each, kept, offsets, shared) for each in plan) for name, plan in plans.items()}


def _kept(plans: Mapping[str, Sequence[Planned]]) -> dict[Key, tuple[Indices, ...]]:
    """For each axis of each tensor the indices that some member takes, rising."""
    kept: dict[Key, tuple[Indices, ...]] = {}
    for cut in (each for plan in plans.values() for each in plan if isinstance(each, Cut)):
        key = cut.tensor, cut.axes
        known = kept.get(key, cut.take)
        kept[key] = tuple(np.union1d(*pair) for pair in zip(known, cut.take, strict=True))
    return kept


def _stored(tensor: Array, key: Key, kept: Sequence[Indices]) -> Array:
    return tensor.transpose(key[1])[np.ix_(*kept)]


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
