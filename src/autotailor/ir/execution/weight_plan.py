"""What a SubNet takes of a weight, axis by axis: one plan, which NumPy slices by and PyTorch executes by.

Worked example: a 3x3 convolution of 8 channels reads a concatenation of two activations of 4 channels, and its weight
has the shape (8, 8, 3, 3). With 6 outputs, and 2 channels left of each activation, the plan is (``Stretch(0, 6)``,
``Selection([0, 1, 4, 5])``, None, None).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from autotailor.ir.dimensions.dimension import Atom, Dimension, Indices, Sizes
from autotailor.ir.dimensions.resampling import Matrix, is_resampled, resampling_matrix
from autotailor.ir.operators.rule import Dimensions, Tensor

Array = npt.NDArray[Any]
Orders = Mapping[Atom, Indices]


@dataclass(frozen=True)
class Stretch:
    """Consecutive entries of an axis; what is taken is a view."""

    start: int
    length: int

    @classmethod
    def between(cls, start: int, end: int) -> Stretch:
        """From an entry to the one before ``end``."""
        return cls(start, end - start)

    @property
    def end(self) -> int:
        """The entry after the last one."""
        return self.start + self.length

    def of_array(self, weight: Array, axis: int) -> Array:
        return weight[(slice(None),) * axis + (slice(self.start, self.end),)]

    def of_tensor(self, weight: Tensor, axis: int) -> Tensor:
        return weight.narrow(axis, self.start, self.length)

    def view(self, weight: Tensor, axis: int) -> Tensor:
        return self.of_tensor(weight, axis)

    def spread(self, gradient: Tensor, axis: int, size: int) -> Tensor:
        """Gradient of an axis of ``size`` entries from the gradient of the taken ones: zero where none was taken."""
        return _spread(self, gradient, axis, size)


@dataclass(frozen=True)
class Runs:
    """Stretches of one length at equal distances: the first channels of each head, or of each of q, k and v.

    The axis has ``whole`` runs of ``step`` entries; of the first ``count`` runs, ``length`` entries from ``start``.
    """

    start: int
    length: int
    count: int
    step: int
    whole: int

    @property
    def end(self) -> int:
        """The entry after the last one."""
        return (self.count - 1) * self.step + self.start + self.length

    def of_array(self, weight: Array, axis: int) -> Array:
        shape = (*weight.shape[:axis], self.whole, self.step, *weight.shape[axis + 1 :])
        cut = (slice(None),) * axis + (slice(self.count), slice(self.start, self.start + self.length))
        return weight.reshape(shape)[cut].reshape(*shape[:axis], self.count * self.length, *shape[axis + 2 :])

    def of_tensor(self, weight: Tensor, axis: int) -> Tensor:
        return self.view(weight, axis).flatten(axis, axis + 1)

    def view(self, weight: Tensor, axis: int) -> Tensor:
        """The runs, with an axis of runs and an axis of the entries of one."""
        runs = torch.unflatten(weight, axis, (self.whole, self.step)).narrow(axis, 0, self.count)
        return runs.narrow(axis + 1, self.start, self.length)

    def spread(self, gradient: Tensor, axis: int, size: int) -> Tensor:
        """Gradient of an axis of ``size`` entries from the gradient of the taken ones: zero where none was taken."""
        return _spread(self, gradient, axis, size)


@dataclass(frozen=True, eq=False)
class Selection:
    """Entries of an axis by their indices; what is taken is a copy."""

    indices: Indices

    @property
    def region(self) -> Stretch:
        """The shortest stretch that holds all entries."""
        if not len(self.indices):
            return Stretch(0, 0)
        return Stretch.between(int(self.indices.min()), int(self.indices.max()) + 1)

    def of_array(self, weight: Array, axis: int) -> Array:
        return weight[(slice(None),) * axis + (self.indices,)]

    def of_tensor(self, weight: Tensor, axis: int) -> Tensor:
        return weight.index_select(axis, self._on(weight.device))

    def spread(self, gradient: Tensor, axis: int, size: int) -> Tensor:
        """Gradient of an axis of ``size`` entries from the gradient of the taken ones: zero where none was taken."""
        shape = (*gradient.shape[:axis], size, *gradient.shape[axis + 1 :])
        return gradient.new_zeros(shape).index_copy_(axis, self._on(gradient.device), gradient)

    def _on(self, device: torch.device) -> Tensor:
        """The indices where the weight is; they are copied there once."""
        if device not in self._tensors:
            self._tensors[device] = torch.from_numpy(self.indices).to(device)
        return self._tensors[device]

    @cached_property
    def _tensors(self) -> dict[torch.device, Tensor]:
        return {}


@dataclass(frozen=True, eq=False)
class _OfMatrix:
    """What is taken by a matrix, which is copied once to each device and into each type of numbers."""

    matrix: Matrix

    def _like(self, other: Tensor) -> Tensor:
        """The matrix where another tensor is, of its type."""
        key = other.device, other.dtype
        if key not in self._tensors:
            with torch.inference_mode(mode=False):  # a training may need the copy that a check has made
                self._tensors[key] = torch.from_numpy(self.matrix).to(other)
        return self._tensors[key]

    @cached_property
    def _tensors(self) -> dict[tuple[torch.device, torch.dtype], Tensor]:
        return {}


@dataclass(frozen=True, eq=False)
class Mixture(_OfMatrix):
    """Mixtures of all entries of an axis, ``matrix`` is ``[active, meta]``.

    An axis that is indexed by the image is interpolated. The axis along which a weight reads a narrowed activation is
    solved in closed form (``ir/moments.py``).
    """

    @property
    def region(self) -> None:
        """Something is taken of every entry."""

    def of_array(self, weight: Array, axis: int) -> Array:
        return np.moveaxis(np.tensordot(self.matrix, weight, (1, axis)), 0, axis)

    def of_tensor(self, weight: Tensor, axis: int) -> Tensor:
        mixed: Tensor = torch.tensordot(self._like(weight), weight, ([1], [axis]))
        return mixed.movedim(0, axis)

    def spread(self, gradient: Tensor, axis: int, size: int) -> Tensor:
        """Gradient of the whole axis from the gradient of its mixtures."""
        spread: Tensor = torch.tensordot(self._like(gradient), gradient, ([0], [axis]))
        return spread.movedim(0, axis)


@dataclass(frozen=True, eq=False)
class Taps(_OfMatrix):
    """Mixtures of the taps of depthwise kernels ``[c, 1, k, k]``, each channel's own: the part of axes 2 and 3.

    ``matrix`` is ``[c, active side squared, k squared]``, for all channels.
    """

    @property
    def region(self) -> None:
        """Something is taken of every entry."""

    def of_array(self, weight: Array, axis: int) -> Array:
        taps = np.einsum("cat,cit->cia", self.matrix, weight.reshape(*weight.shape[:axis], -1))
        side = math.isqrt(self.matrix.shape[1])
        kernels: Array = taps.reshape(*weight.shape[:axis], side, side)
        return kernels

    def of_tensor(self, weight: Tensor, axis: int) -> Tensor:
        taps: Tensor = torch.einsum("cat,cit->cia", self._like(weight), weight.flatten(axis))
        side = math.isqrt(self.matrix.shape[1])
        return taps.reshape(*weight.shape[:axis], side, side)

    def spread(self, gradient: Tensor, axis: int, size: int) -> Tensor:
        """Gradient of the whole kernels from the gradient of the mixtures."""
        taps: Tensor = torch.einsum("cat,cia->cit", self._like(gradient), gradient.flatten(axis))
        return taps.reshape(*gradient.shape[:axis], size, size)


def _spread(part: Stretch | Runs, gradient: Tensor, axis: int, size: int) -> Tensor:
    spread = gradient.new_zeros((*gradient.shape[:axis], size, *gradient.shape[axis + 1 :]))
    taken = part.view(spread, axis)
    taken.copy_(gradient.reshape(taken.shape))
    return spread


Mixing = Mixture | Taps
Part = Stretch | Runs | Selection | Mixing
WeightPlan = tuple[Part | None, ...]
"""For each axis of a weight what is taken of the axis; None where the axis stays whole."""
Region = tuple[Stretch | Runs | None, ...]
"""A plan of which PyTorch makes a view."""


def plan_weight(axes: Dimensions, sizes: Sizes, orders: Orders | None = None) -> WeightPlan:
    """What is taken of a weight.

    Args:
        axes: the dimensions of the weight.
        sizes: the active size of each atom.
        orders: permutations of the channels of atoms; none where channels keep their order.
    """
    return tuple(_part(axis, sizes, orders or {}) for axis in axes)


def _part(axis: Dimension, sizes: Sizes, orders: Orders) -> Part | None:
    if is_resampled(axis, sizes):
        return Mixture(resampling_matrix(axis, sizes))
    indices = axis.indices(sizes, orders)
    first = int(indices[0]) if len(indices) else 0
    if not len(indices) or not np.array_equal(indices, np.arange(first, first + len(indices))):
        return _runs(indices, axis.meta) or Selection(indices)
    return None if len(indices) == axis.meta else Stretch(first, len(indices))


def _runs(indices: Indices, size: int) -> Runs | None:
    """Indices of an axis of ``size`` entries as runs, where they are that."""
    breaks = np.flatnonzero(np.diff(indices) != 1) + 1
    if not len(breaks):
        return None
    start, length, count = int(indices[0]), int(breaks[0]), len(breaks) + 1
    step = int(indices[length]) - start
    if step <= 0 or size % step or start + length > step:
        return None
    expected = start + (np.arange(count)[:, None] * step + np.arange(length)).reshape(-1)
    return Runs(start, length, count, step, size // step) if np.array_equal(indices, expected) else None


def region_of(plan: WeightPlan) -> Region:
    """The smallest region that holds all that a plan takes; the whole weight where that mixes taps of all channels."""
    if any(isinstance(part, Taps) for part in plan):
        return (None,) * len(plan)
    return tuple(part.region if isinstance(part, Selection | Mixing) else part for part in plan)


def mixing_first(plan: WeightPlan) -> list[tuple[int, Part]]:
    """The parts of a plan with their axes; whole weights are mixed, so that all slices of a mixture agree."""
    parts = [(axis, part) for axis, part in enumerate(plan) if part is not None]
    return sorted(parts, key=lambda each: not isinstance(each[1], Mixing))


def take_array(weight: Array, plan: WeightPlan) -> Array:
    """The part of a weight that a plan takes, of the weight's type; a view where every axis is whole or a stretch."""
    taken = weight
    for axis, part in mixing_first(plan):
        taken = part.of_array(taken, axis)
    return taken.astype(weight.dtype, copy=False)  # matrices have double precision


def take_tensor(weight: Tensor, plan: WeightPlan) -> Tensor:
    """The part of a weight that a plan takes; gradients flow back to the whole weight."""
    taken = weight
    for axis, part in mixing_first(plan):
        taken = part.of_tensor(taken, axis)
    return taken


def in_region(plan: WeightPlan, gradient: Tensor, region: Region, shape: Sequence[int]) -> Tensor:
    """The gradient of a region that holds what a plan takes; the same tensor where the plan takes all of the region.

    Args:
        plan: of what is taken.
        gradient: of what ``take_tensor`` returns.
        region: whose gradient is asked for.
        shape: of the whole weight.
    """
    for axis, (part, target) in enumerate(zip(plan, region, strict=True)):
        if part != target:
            whole = gradient if part is None else part.spread(gradient, axis, shape[axis])
            gradient = whole if target is None else target.of_tensor(whole, axis).contiguous()
    return gradient


def union(one: Region, other: Region, shape: Sequence[int]) -> Region:
    """The smallest region that holds both, where entries of one axis are a stretch unless both have the same runs."""
    return tuple(_hull(a, b, size) for a, b, size in zip(one, other, shape, strict=True))


def _hull(one: Stretch | Runs | None, other: Stretch | Runs | None, size: int) -> Stretch | Runs | None:
    """What holds two parts of an axis of ``size`` entries; None where that is the whole axis."""
    if one == other:
        return one
    if one is None or other is None:
        return None
    start, end = min(one.start, other.start), max(one.end, other.end)
    return None if end - start == size else Stretch.between(start, end)


def view(weight: Tensor, region: Region) -> Tensor:
    """A view of a region, in which runs have two axes."""
    for axis, part in reversed(list(enumerate(region))):
        weight = weight if part is None else part.view(weight, axis)
    return weight
