"""Finds the axis that holds the batch, and moves it to the front (fused q-k-v are ``[3, batch, heads, tokens, d]``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autotailor.ir.dimensions.dimension import Batch, Dimension, factors_of
from autotailor.ir.feature import Attributes, Shape, freeze_attributes


def batch_axis(dimensions: Sequence[Dimension]) -> int:
    """The axis that carries the batch; 0 where none does."""
    found = (i for i, axis in enumerate(dimensions) if any(isinstance(factor, Batch) for factor in factors_of(axis)))
    return next(found, 0)


def batch_first(shape: Shape, batch_axes: Mapping[str, int] | None, name: str) -> Shape:
    """A tensor's shape with its batch in front."""
    axis = (batch_axes or {}).get(name, 0)
    return (shape[axis], *shape[:axis], *shape[axis + 1 :])


def renumbered(attributes: Attributes, batch: int, rank: int) -> Attributes:
    """Attributes that name axes (``axis``, ``axes``, ``perm``), renumbered for an input with its batch in front.

    The batch of a permutation's output is in front, too.

    Args:
        attributes: of the operator.
        batch: the axis of the input's batch before it goes to the front.
        rank: of the input.
    """
    values = dict(attributes)
    perm = values.get("perm")
    if batch == 0 and not (isinstance(perm, tuple) and perm and perm[0] != 0):
        return attributes

    def new(axis: int) -> int:
        axis %= rank
        return 0 if axis == batch else axis + (axis < batch)

    if isinstance(axis := values.get("axis"), int):
        values["axis"] = new(axis)
    if isinstance(axes := values.get("axes"), tuple):
        values["axes"] = tuple(new(int(axis)) for axis in axes)
    if isinstance(perm, tuple):
        values["perm"] = (0, *(new(int(axis)) for axis in perm if int(axis) != batch))
    return freeze_attributes(values)
