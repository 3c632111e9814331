"""Unification of dimensions: dimensions that must be equal become one expression.

Union-find over atoms: an atom may be bound to another atom, to a constant (the atom becomes static) or to an expression
(the channels of a grouped convolution become groups times channels per group, the channels of a fused projection become
heads times channels per head). Dimensions that cannot be made equal part by part become static on both sides, which is
always legal. Spatial expressions may agree for every few pixels only, where a map is halved and doubled again, or cut
into patches; the resolution is then restricted to a step.

Worked example: a fused projection to 48 channels is reshaped to (3, 4, 4) and split along the first of the new axes.
``factor`` binds the atom of 48 to ``Product((a, b, c))``; ``cut`` then finds that a is indexed and makes it
``Constant(3)``. Heads b and channels per head c stay elastic, and the index set of the projection's weight follows.
"""

from collections.abc import Callable, Sequence

from autotailor.ir.dimensions.dimension import (
    Atom,
    Batch,
    Constant,
    Dimension,
    Product,
    Resolution,
    Sizes,
    Sum,
    Window,
    factors_of,
    parts_of,
    product,
    total,
)

LEAST_CHOICES = 4  # where a step would leave fewer resolutions, the resolution becomes static


class Unifier:
    """Couples dimensions, and divides dimensions as reshapes and splits do."""

    def __init__(self) -> None:
        self._bindings: dict[Atom, Dimension] = {}
        self._steps: dict[Resolution, int] = {}

    def step(self, resolution: Resolution) -> int:
        """The number of pixels that resolutions must be a multiple of, so that every unification holds."""
        return self._steps.get(resolution, 1)

    def resolve(self, dimension: Dimension) -> Dimension:
        """The expression with every bound atom replaced by the expression that the atom is bound to."""
        if isinstance(dimension, Atom):
            bound = self._bindings.get(dimension)
            if bound is None:
                return dimension
            resolved = self.resolve(bound)
            self._bindings[dimension] = resolved
            return resolved
        children = dimension.children()
        if not children:
            return dimension
        resolved_children = tuple(self.resolve(child) for child in children)
        return dimension if resolved_children == children else dimension.with_children(resolved_children)

    def freeze(self, dimension: Dimension) -> None:
        """Makes every atom of the dimension static."""
        for atom in tuple(self.resolve(dimension).atoms()):
            self._bindings[atom] = Constant(atom.meta)

    def unify(self, left: Dimension, right: Dimension) -> None:
        """Couples two dimensions of equal meta size."""
        left, right = self.resolve(left), self.resolve(right)
        if left == right or left.meta == 1 == right.meta or self._agree(left, right, coarse=False):
            return
        if not isinstance(left, Atom) or (isinstance(left, Resolution) and isinstance(right, Atom)):
            left, right = right, left
        if isinstance(left, Atom) and not isinstance(left, Resolution):
            self._bind(left, right)
        elif not self._unify_parts(left, right) and not self._agree(left, right, coarse=True):
            self.freeze(left)
            self.freeze(right)

    def _bind(self, atom: Atom, other: Dimension) -> None:
        if atom in tuple(other.atoms()):
            self.freeze(other)
        else:
            self._bindings[atom] = other

    def _unify_parts(self, left: Dimension, right: Dimension) -> bool:
        """Whether two compound expressions could be made equal part by part."""
        if isinstance(left, Product) and isinstance(right, Product):
            return self._unify_products(left, right)
        if isinstance(left, Sum) and isinstance(right, Sum):
            pieces = self.cut(left, [part.meta for part in right.parts])
            for piece, part in zip(pieces, right.parts, strict=True):
                self.unify(piece, part)
            return True
        if isinstance(left, Sum) and isinstance(right, Product):
            left, right = right, left
        if isinstance(left, Product) and isinstance(right, Sum):
            outer, *rest = left.factors
            pair = self._split(right, outer.meta)
            if pair is not None:
                self.unify(outer, pair[0])
                self.unify(product(tuple(rest)), pair[1])
                return True
        return False

    def _unify_products(self, left: Product, right: Product) -> bool:
        """Couples the shortest runs of factors of the same size; one of two such runs must be a single factor."""
        a, b = list(left.factors), list(right.factors)
        while a and b:
            one, other = [a.pop(0)], [b.pop(0)]
            while (x := product(tuple(one)).meta) != (y := product(tuple(other)).meta):
                shorter, source = (one, a) if x < y else (other, b)
                if not source:
                    return False
                shorter.append(source.pop(0))
            if len(one) > 1 and len(other) > 1:
                return False
            self.unify(product(tuple(one)), product(tuple(other)))
        return not a and not b

    # The image.

    def _agree(self, left: Dimension, right: Dimension, coarse: bool) -> bool:
        """Whether two spatial expressions have the same size for every resolution, or for every few pixels."""
        atoms = set(left.atoms()) | set(right.atoms())
        if not all(isinstance(atom, Resolution) for atom in atoms):
            return False

        def equal(sizes: Sizes) -> bool:
            return (a := left.size(sizes)) == (b := right.size(sizes)) or (a <= 0 and b <= 0)

        return self._restrict(atoms, equal, coarse)

    def _restrict(self, atoms: set[Atom], holds: Callable[[Sizes], bool], coarse: bool) -> bool:
        """Takes the smallest step of resolutions for which something holds; at least some of them must be left."""
        if len(atoms) != 1 or not isinstance(resolution := next(iter(atoms)), Resolution):
            return False
        start = self.step(resolution)
        limit = max(start, resolution.meta // LEAST_CHOICES) if coarse else start
        for step in range(start, limit + 1, start):
            sizes = range(step, resolution.meta + 1, step)
            if resolution.meta % step == 0 and all(holds(lambda _, n=n: n) for n in sizes):  # type: ignore[misc]
                self._steps[resolution] = step
                return True
        return False

    # Taking apart.

    def factor(self, axes: Sequence[Dimension], metas: Sequence[int]) -> tuple[Dimension, ...]:
        """Axes in row-major order regrouped to the sizes of a reshape; what does not fit becomes static."""
        pending = [f for axis in axes for f in factors_of(self.resolve(axis)) if f != Constant(1)]
        pending.reverse()
        factors: list[Dimension] = []
        ahead = _ones_ahead(axes) if len(metas) >= len(axes) else 0
        for position, meta in enumerate(metas, 1):
            if meta == 1 and position <= ahead:  # axes of 1 in front of the batch stay in front of it
                factors.append(Constant(1))
                continue
            taken = self._take(pending, meta)
            if taken is None:
                return self._static(axes, metas)
            if position == len(metas) - 1 and metas[-1] > 1 and pending and isinstance(pending[-1], Batch):
                taken = product((taken, pending.pop()))  # the last axis, that of the features, never carries the batch
            factors.append(taken)
        return tuple(factors)

    def _take(self, pending: list[Dimension], meta: int) -> Dimension | None:
        """Pops factors (from the end of ``pending``) that make up one axis; None where that is impossible."""
        taken: list[Dimension] = []
        if pending and isinstance(pending[-1], Batch):
            taken.append(pending.pop())
        missing = meta
        while missing > 1:
            if not pending:
                return None
            factor, *inner = factors_of(self.resolve(pending.pop()))
            pending.extend(reversed(inner))
            if missing % factor.meta != 0:
                if factor.meta % missing != 0 or (pair := self._split(factor, missing)) is None:
                    return None
                factor, rest = pair
                pending.append(rest)
            taken.append(factor)
            missing //= factor.meta
        return product(tuple(taken))

    def _split(self, dimension: Dimension, outer: int) -> tuple[Dimension, Dimension] | None:
        """A dimension as (outer, inner) factors; None where only a static one could be split."""
        inner = dimension.meta // outer
        if isinstance(dimension, Sum) and not dimension.is_spatial:
            return self._split_sum(dimension, inner)
        if isinstance(dimension, Atom) and not isinstance(dimension, Resolution):
            pair = _fresh(dimension, outer, 0), _fresh(dimension, inner, 1)
            self._bindings[dimension] = product(pair)
            return pair
        atoms = set(dimension.atoms())
        if dimension.is_spatial and self._restrict(atoms, lambda sizes: dimension.size(sizes) % inner == 0, True):
            return Window(dimension, inner, inner), Constant(inner)  # patches of a fixed size, as many as fit
        self.freeze(dimension)
        return Constant(outer), Constant(inner)

    def _split_sum(self, dimension: Sum, inner: int) -> tuple[Dimension, Dimension] | None:
        """Each part becomes some rows of the same inner size."""
        if any(part.meta % inner for part in dimension.parts):
            return None
        rows: list[Dimension] = []
        shared: Dimension | None = None
        for part in dimension.parts:
            taken = self.factor([part], [part.meta // inner, inner])
            rows.append(taken[0])
            if shared is not None:
                self.unify(shared, taken[1])
            shared = taken[1]
        assert shared is not None
        return self.resolve(total(tuple(rows))), self.resolve(shared)

    def cut(self, dimension: Dimension, metas: Sequence[int]) -> tuple[Dimension, ...]:
        """Consecutive segments of an axis, as Split makes them; what does not fit becomes static."""
        dimension = self.resolve(dimension)
        present = [meta for meta in metas if meta]
        if len(present) < len(metas):
            segments = iter(self.cut(dimension, present))
            return tuple(next(segments) if meta else Constant(0) for meta in metas)
        if len(metas) == 1:
            return (dimension,)
        if isinstance(dimension, Sum):
            return self._cut_sum(dimension, metas)
        if isinstance(dimension, Product):
            outer, *rest = dimension.factors
            inner = product(tuple(rest))
            if all(meta % inner.meta == 0 for meta in metas):
                pieces = self.cut(outer, [meta // inner.meta for meta in metas])
                return tuple(product((piece, inner)) for piece in pieces)
        if isinstance(dimension, Atom) and not isinstance(dimension, Resolution):
            pieces = tuple(_fresh(dimension, meta, i) for i, meta in enumerate(metas))
            self._bindings[dimension] = total(pieces)
            return pieces
        self.freeze(dimension)
        return tuple(Constant(meta) for meta in metas)

    def _cut_sum(self, dimension: Sum, metas: Sequence[int]) -> tuple[Dimension, ...]:
        pending = list(reversed(dimension.parts))
        segments: list[Dimension] = []
        for meta in metas:
            taken: list[Dimension] = []
            missing = meta
            while missing:
                part, *rest_parts = parts_of(self.resolve(pending.pop()))
                pending.extend(reversed(rest_parts))
                if part.meta > missing:
                    part, rest = self.cut(part, [missing, part.meta - missing])
                    pending.append(rest)
                taken.append(part)
                missing -= part.meta
            segments.append(total(tuple(taken)))
        return tuple(segments)

    def _static(self, axes: Sequence[Dimension], metas: Sequence[int]) -> tuple[Dimension, ...]:
        """Everything static; the batch stays in front, where it came from there."""
        first = factors_of(self.resolve(axes[0]))[0] if axes else None
        for axis in axes:
            self.freeze(axis)
        sizes: list[Dimension] = [Constant(meta) for meta in metas]
        if isinstance(first, Batch) and sizes:
            sizes[0] = product((Batch(), sizes[0]))
        return tuple(sizes)


def _fresh(atom: Atom, meta: int, number: int) -> Dimension:
    """A new atom for a part of another one, which is about to be bound."""
    return Constant(meta) if meta <= 1 else Atom(f"{atom.name}/{number}", meta)


def _ones_ahead(axes: Sequence[Dimension]) -> int:
    """How many axes of one element stand in front of the axis that holds the batch."""
    for count, axis in enumerate(axes):
        if any(isinstance(factor, Batch) for factor in factors_of(axis)):
            return count
        if axis != Constant(1):
            break
    return 0
