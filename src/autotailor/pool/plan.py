"""The plan of a member: which slice of which tensor of the SuperNet each piece of its weights is.

The IR knows which slice of each tensor the SubNet computes with (``plan_weight``). The exporter folds normalisations
into some of these slices, transposes some, cuts some into parts, and writes them in an order of its own. Which one a
piece is, is read off from the values. With the SubNet's slice as a matrix w with rows w_o, piece p is

    p_o = s_o w_r(o)        for all rows o, with one factor s_o for each row,

where r leaves the rows as they are, or takes some of them (attention's fused q, k and v). The factors follow by least
squares, s_o = <p_o, w_r(o)> / <w_r(o), w_r(o)>, and the piece counts as found only where every value agrees. Factors of
a folded normalisation are gain / sqrt(variance + epsilon), with the member's own calibrated variance. What is no such
slice is stored as it is: biases that normalisations have shifted, statistics, resampled embeddings.
"""

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.ir.dimensions.dimension import Indices
from autotailor.ir.execution.active_weights import plan_active
from autotailor.ir.execution.weight_plan import Mixing, WeightPlan, take_array
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet
from autotailor.pool.recording import Recorded
from autotailor.serving.files.pieces import Ranges

Array = npt.NDArray[Any]

TOLERANCE = 2e-6
"""Largest difference, relative to each value; the exporter and the reader round in single precision."""
LEAST_ROW = 2
"""Numbers of a row from which a factor for each row takes less room than the row."""
LOOKED_AT = 64
"""Numbers of a row by which its row in the tensor is looked up, before all numbers are compared."""


@dataclass(frozen=True, eq=False)
class Cut:
    """A slice of a tensor, before the tensor has a place in a file.

    Attributes:
        tensor: name in the SuperNet's graph.
        axes: order of the tensor's axes in which it is read.
        take: for each axis, in that order, the indices that are taken.
        scale: one factor for each entry of the first axis, float32; None without factors.
    """

    tensor: str
    axes: tuple[int, ...]
    take: tuple[Indices, ...]
    scale: Array | None = None


@dataclass(frozen=True, eq=False)
class Vector:
    """Numbers that are no slice."""

    values: Array


@dataclass(frozen=True)
class StorageTag:
    """ncnn's storage tag."""


Planned = Cut | Vector | StorageTag


@dataclass(frozen=True, eq=False)
class Candidate:
    """A tensor that a SubNet reads, with the slice that the SubNet computes with.

    Attributes:
        tensor: name in the SuperNet's graph; behind it stands the choice that a tensor in closed form was solved for.
        take: for each axis the indices that the SubNet takes.
        value: the slice.
        solved: the tensor, where it is one in closed form.
    """

    tensor: str
    take: tuple[Indices, ...]
    value: Array
    solved: Array | None = None

    def views(self) -> Iterator[tuple[tuple[int, ...], Array]]:
        """The slice with its axes in each order that gives other rows, beginning with its own order.

        Axes of one entry come last, so that the first axis has the rows.
        """
        own = tuple(range(self.value.ndim))
        long = [axis for axis in own if self.value.shape[axis] > 1]
        short = [axis for axis in own if axis not in long]
        for axes in dict.fromkeys((own, *((*order, *short) for order in itertools.permutations(long)))):
            yield axes, self.value.transpose(axes)


def plan_member(candidates: Sequence[Candidate], pieces: Sequence[Recorded]) -> tuple[Planned, ...]:
    """The plan of a SubNet with the SuperNet's weights.

    Args:
        candidates: see ``candidates_of``.
        pieces: of its exported ``.bin``.
    """
    return tuple(_planned(piece, candidates) for piece in pieces)


def candidates_of(net: SuperNet, subnet: SubNet) -> tuple[Candidate, ...]:
    """The tensors that a SubNet reads, in the order of the graph.

    A weight that is solved in closed form is a tensor for each choice that it was solved for. What is resampled with
    the image is left out.
    """
    elastic, sizes = net.elastic, net.elastic.sizes(subnet)
    names = dict.fromkeys(name for node in elastic.remainder(subnet).nodes for name in node.inputs)
    candidates = []
    for name in names:
        weight = elastic.graph.weights.get(name)
        if weight is None or weight.dtype != np.float32 or not weight.ndim:
            continue
        plan, solved = plan_active(elastic, name, sizes), None
        if any(isinstance(part, Mixing) for part in plan):
            if elastic.moments is None or name not in elastic.readers:
                continue
            mixed = tuple(part if isinstance(part, Mixing) else None for part in plan)
            plan = tuple(None if isinstance(part, Mixing) else part for part in plan)
            weight = solved = take_array(weight, mixed)
            name = f"{name} {_choice(mixed)}"
        whole = [np.arange(size) for size in weight.shape]
        take = tuple(axis if part is None else part.of_array(axis, 0) for axis, part in zip(whole, plan, strict=True))
        candidates.append(Candidate(name, take, np.ascontiguousarray(take_array(weight, plan)), solved))
    return tuple(candidates)


def _choice(plan: WeightPlan) -> str:
    """What tells the mixtures of a plan from those of other choices."""
    mixtures = b"".join(part.matrix.tobytes() for part in plan if isinstance(part, Mixing))
    return hashlib.sha256(mixtures).hexdigest()[:12]


def _planned(piece: Recorded, candidates: Sequence[Candidate]) -> Planned:
    if piece.is_tag:
        return StorageTag()
    planned = _same(piece.values, candidates)
    if planned is None and piece.tagged:
        planned = _scaled(piece.values, candidates) or _rows(piece.values, candidates)
    return planned or Vector(piece.values)


def _same(values: Array, candidates: Sequence[Candidate]) -> Cut | None:
    """A slice that has the same numbers in the same order."""
    for each in candidates:
        if each.value.size == values.size and np.array_equal(each.value.reshape(-1), values):
            return Cut(each.tensor, tuple(range(each.value.ndim)), each.take)
    return None


def _scaled(values: Array, candidates: Sequence[Candidate]) -> Cut | None:
    """A slice with its axes in some order, whose rows are scaled."""
    fitting = [each for each in candidates if each.value.size == values.size]
    for axes, view, each in _all_views(fitting):
        rows = values.reshape(len(view), -1)
        scale = factors(rows, view)
        if scale is not None:
            take = tuple(each.take[axis] for axis in axes)
            return Cut(each.tensor, axes, take, None if (scale == 1).all() else scale)
    return None


def _rows(values: Array, candidates: Sequence[Candidate]) -> Cut | None:
    """Some rows of a larger slice, scaled."""
    fitting = [each for each in candidates if each.value.size > values.size]
    for axes, view, each in _all_views(fitting):
        length = view[0].size
        if length < LOOKED_AT // 8 or values.size % length:
            continue
        rows = values.reshape(-1, length)
        chosen = _nearest(rows, view.reshape(len(view), -1))
        scale = factors(rows, view[chosen])
        if scale is not None:
            take = (each.take[axes[0]][chosen], *(each.take[axis] for axis in axes[1:]))
            return Cut(each.tensor, axes, take, None if (scale == 1).all() else scale)
    return None


def _all_views(candidates: Sequence[Candidate]) -> Iterator[tuple[tuple[int, ...], Array, Candidate]]:
    """Views of all candidates; those in the candidates' own order of axes come first."""
    views = [(number, axes, view, each) for each in candidates for number, (axes, view) in enumerate(each.views())]
    for _, axes, view, each in sorted(views, key=lambda key: bool(key[0])):
        if view.ndim > 1:
            yield axes, view, each


def factors(rows: Array, view: Array) -> Array | None:
    """The factors s ``[r]`` with rows = s view, float32; None where there are none.

    Args:
        rows: ``[r, n]``.
        view: ``[r, ...]`` with n numbers in each entry of the first axis.
    """
    if rows.shape[1] < LEAST_ROW or _factors(rows[:1], view[:1].reshape(1, -1)) is None:
        return None  # the first row tells almost always
    return _factors(rows, view.reshape(len(view), -1))


def _factors(rows: Array, matrix: Array) -> Array | None:
    if np.array_equal(rows, matrix):
        return np.ones(len(rows), np.float32)
    squares = np.einsum("on,on->o", matrix, matrix, dtype=np.float64)
    products = np.einsum("on,on->o", rows, matrix, dtype=np.float64)
    scale = (products / np.where(squares > 0, squares, 1)).astype(np.float32)
    least = np.finfo(np.float32).tiny
    agree = np.abs(rows - scale[:, None] * matrix) <= TOLERANCE * np.abs(rows) + least
    return scale if agree.all() else None


def _nearest(rows: Array, matrix: Array) -> Indices:
    """For each row the row of a matrix that has most nearly its direction, or the opposite one."""
    ours, theirs = (_unit(part[:, :LOOKED_AT]) for part in (rows, matrix))
    nearest: Indices = np.abs(ours @ theirs.T).argmax(1)
    return nearest


def _unit(rows: Array) -> Array:
    lengths = np.sqrt(np.einsum("on,on->o", rows, rows))
    units: Array = rows / np.where(lengths > 0, lengths, 1)[:, None]
    return units


def ranges_of(indices: Indices) -> Ranges:
    """Indices as half-open ranges of consecutive ones, in their order."""
    breaks = np.flatnonzero(np.diff(indices) != 1) + 1
    return tuple((int(part[0]), int(part[-1]) + 1) for part in np.split(indices, breaks))
