"""Dimensions: every axis of every tensor as an expression of atoms.

An *atom* is a quantity that may change by itself (the width of one group of coupled channels, the input's
resolution). A dimension is a constant, the batch, an atom, a sum (of a Concat), a product (of a Flatten, a grouped
convolution or attention heads) or a window (the part of a spatial axis that a sliding kernel leaves).

Worked example: two convolutions with 8 outputs each, concatenated and flattened over a 3x3 map, feed a Gemm. Its
input axis is ``Product((Sum((a, b)), Constant(3), Constant(3)))`` of meta size 144. With a = 4 and b = 8 its
active size is 108, and the meta indices to keep are those of channels 0..3 and 8..15: not a prefix.
``indices`` derives them atom by atom.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

RESOLUTION = "resolution"
"""The name of the atom, and of the variable of the space, that is the side of the image."""
EXPAND_RATIO, KERNEL_SIZE, HEADS, V_SCALE, WIDTH = "expand_ratio", "kernel_size", "heads", "v_scale", "width"
"""Kinds of the variables that set sizes."""

Indices = npt.NDArray[np.int64]
Sizes = Callable[["Atom"], int]


class Dimension:
    """Base of dimension expressions; immutable."""

    meta: int

    def size(self, sizes: Sizes) -> int:
        """Active size, given the active size of each atom."""
        raise NotImplementedError

    def indices(self, sizes: Sizes, orders: Mapping[Atom, Indices]) -> Indices:
        """Meta indices that stay, in order; ``orders`` maps atoms to permutations of their channels."""
        raise NotImplementedError

    def children(self) -> tuple[Dimension, ...]:
        """The parts of the expression."""
        return ()

    def with_children(self, children: tuple[Dimension, ...]) -> Dimension:
        """The same expression over other parts."""
        return self

    def substituted(self, replacements: Mapping[Any, Dimension]) -> Dimension:
        """The expression with some parts (or itself) replaced by others."""
        if self in replacements:
            return replacements[self]
        children = self.children()
        changed = tuple(child.substituted(replacements) for child in children)
        return self if changed == children else self.with_children(changed)

    def atoms(self) -> Iterator[Atom]:
        """Atoms of the expression, left to right."""
        for child in self.children():
            yield from child.atoms()

    @property
    def is_spatial(self) -> bool:
        """Whether the size of the image enters."""
        return any(child.is_spatial for child in self.children())


@dataclass(frozen=True)
class Constant(Dimension):
    """A size that never changes."""

    meta: int

    def size(self, sizes: Sizes) -> int:
        return self.meta

    def indices(self, sizes: Sizes, orders: Mapping[Atom, Indices]) -> Indices:
        return np.arange(self.meta)


@dataclass(frozen=True)
class Batch(Dimension):
    """The batch axis: one image for the IR, any number when a network runs; reshapes must not lose it."""

    meta: int = 1

    def size(self, sizes: Sizes) -> int:
        return 1

    def indices(self, sizes: Sizes, orders: Mapping[Atom, Indices]) -> Indices:
        return np.arange(1)


@dataclass(frozen=True)
class Atom(Dimension):
    """A size that may change by itself; ``name`` is unique in its network."""

    name: str
    meta: int

    def size(self, sizes: Sizes) -> int:
        return sizes(self)

    def indices(self, sizes: Sizes, orders: Mapping[Atom, Indices]) -> Indices:
        order = orders.get(self)
        return (np.arange(self.meta) if order is None else order)[: sizes(self)]

    def atoms(self) -> Iterator[Atom]:
        yield self


@dataclass(frozen=True)
class Kernel(Atom):
    """Side of a convolution's kernel: smaller ones are its centre (Cai et al., 2020, Once-for-All)."""

    LEAST: ClassVar[int] = 3  # smaller ones see no neighbours

    def indices(self, sizes: Sizes, orders: Mapping[Atom, Indices]) -> Indices:
        start = (self.meta - sizes(self)) // 2
        return np.arange(start, start + sizes(self))


@dataclass(frozen=True)
class Resolution(Atom):
    """The side of the (square) image: an atom that weights are never sliced by."""

    @property
    def is_spatial(self) -> bool:
        return True


@dataclass(frozen=True)
class Side(Atom):
    """A side of a map that says nothing of its size, and takes the size of the maps beside which the map is read."""

    @property
    def is_spatial(self) -> bool:
        return True


@dataclass(frozen=True)
class Sum(Dimension):
    """Axes laid end to end, as Concat leaves them."""

    parts: tuple[Dimension, ...]

    @property
    def meta(self) -> int:  # type: ignore[override]
        return sum(part.meta for part in self.parts)

    def size(self, sizes: Sizes) -> int:
        return sum(part.size(sizes) for part in self.parts)

    def indices(self, sizes: Sizes, orders: Mapping[Atom, Indices]) -> Indices:
        offsets = np.cumsum([0] + [part.meta for part in self.parts])
        return np.concatenate(
            [offset + part.indices(sizes, orders) for offset, part in zip(offsets, self.parts, strict=False)]
        )

    def children(self) -> tuple[Dimension, ...]:
        return self.parts

    def with_children(self, children: tuple[Dimension, ...]) -> Dimension:
        return total(children)


@dataclass(frozen=True)
class Product(Dimension):
    """Axes flattened into one, the last running fastest."""

    factors: tuple[Dimension, ...]

    @property
    def meta(self) -> int:  # type: ignore[override]
        return math.prod(factor.meta for factor in self.factors)

    def size(self, sizes: Sizes) -> int:
        return math.prod(factor.size(sizes) for factor in self.factors)

    def indices(self, sizes: Sizes, orders: Mapping[Atom, Indices]) -> Indices:
        kept = np.zeros(1, dtype=np.int64)
        for factor in self.factors:
            inner = factor.indices(sizes, orders)
            kept = (kept[:, None] * factor.meta + inner[None, :]).ravel()
        return kept

    def children(self) -> tuple[Dimension, ...]:
        return self.factors

    def with_children(self, children: tuple[Dimension, ...]) -> Dimension:
        return product(children)


def slid(source: Dimension, shrink: int, stride: int = 1, ceil: bool = False, begin: int = 0) -> Dimension:
    """The axis that a window leaves: a Window, a Constant, or the axis itself where nothing changes.

    A window behind one of stride 1, such as a pad, is one window, so that pads of a module's own change no expression:

        (size - a + 1 - b) / stride + 1  =  (size - (a + b - 1)) / stride + 1
    """
    if isinstance(source, Window) and source.stride == 1 and not source.ceil and not ceil:
        shrink, source = source.shrink + shrink - 1, source.source
    if shrink == 1 and stride == 1:
        return source
    window = Window(source, shrink, stride, ceil, begin)
    return Constant(window.meta) if isinstance(source, Constant) else window


@dataclass(frozen=True)
class Window(Dimension):
    """The part of a spatial axis that a sliding kernel leaves: ``(size - shrink) / stride + 1``.

    ``shrink`` is ``dilation * (kernel - 1) + 1`` less the pads, so that a padded 3x3 and a plain 1x1 of one stride are
    the same expression, as both ends of a residual sum need. A spatial axis has a size but no index set. A weight with
    a spatial axis is resampled where that has a meaning; any other such weight makes the resolution static.

    With ``ceil`` the quotient is rounded up, but no window starts behind the image and its ``begin`` pads.
    """

    source: Dimension
    shrink: int
    stride: int
    ceil: bool = False
    begin: int = 0

    @property
    def meta(self) -> int:  # type: ignore[override]
        return self._leave(self.source.meta)

    def _leave(self, size: int) -> int:
        room = size - self.shrink
        if not self.ceil:
            return room // self.stride + 1
        fitting, starting = -(-room // self.stride) + 1, -(-(size + self.begin) // self.stride)
        return (fitting + starting - abs(fitting - starting)) // 2  # the smaller one, of arrays of sizes as well

    def size(self, sizes: Sizes) -> int:
        return self._leave(self.source.size(sizes))

    def indices(self, sizes: Sizes, orders: Mapping[Atom, Indices]) -> Indices:
        if self.size(sizes) != self.meta:
            raise ValueError(f"a spatial axis of {self.meta} cannot be sliced to {self.size(sizes)}")
        return np.arange(self.meta)

    def children(self) -> tuple[Dimension, ...]:
        return (self.source,)

    def with_children(self, children: tuple[Dimension, ...]) -> Dimension:
        window = replace(self, source=children[0])
        return Constant(window.meta) if isinstance(children[0], Constant) else window

    @property
    def is_spatial(self) -> bool:
        return True


def product(factors: tuple[Dimension, ...]) -> Dimension:
    """A product without factors of one; nested products are flattened, constants stay where they are."""
    flat: list[Dimension] = []
    for factor in factors:
        flat.extend(factor.factors if isinstance(factor, Product) else (factor,))
    kept = tuple(f for f in flat if not (isinstance(f, Constant) and f.meta == 1))
    if not kept:
        return Constant(1)
    if all(isinstance(f, Constant) for f in kept):
        return Constant(math.prod(f.meta for f in kept))
    return kept[0] if len(kept) == 1 else Product(kept)


def total(parts: tuple[Dimension, ...]) -> Dimension:
    """A sum without nested sums; constants alone add up to a constant."""
    flat: list[Dimension] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Sum) else (part,))
    flat = [part for part in flat if part != Constant(0)]
    if all(isinstance(part, Constant) for part in flat):
        return Constant(sum(part.meta for part in flat))
    return flat[0] if len(flat) == 1 else Sum(tuple(flat))


def factors_of(dimension: Dimension) -> tuple[Dimension, ...]:
    """Factors of a product; any other dimension is its own only factor."""
    return dimension.factors if isinstance(dimension, Product) else (dimension,)


def parts_of(dimension: Dimension) -> tuple[Dimension, ...]:
    """Parts of a sum; any other dimension is its own only part."""
    return dimension.parts if isinstance(dimension, Sum) else (dimension,)
