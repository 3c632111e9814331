"""Split, Slice and Gather: pieces of axes.

A piece of a sum is a part of the sum, as Concat made it. A piece of an atom is a new atom, and the axis becomes the
sum of its pieces.
"""

from collections.abc import Sequence
from typing import Any

from autotailor.ir.dimensions.dimension import Constant, Dimension, Window
from autotailor.ir.feature import Attributes, Shape, freeze_attributes
from autotailor.ir.graph import Node
from autotailor.ir.operators.rule import Deduction, Dimensions, OperatorRule, Tensor, register

END = 2**31 - 1  # a bound behind the end of any axis


@register
class SplitRule(OperatorRule):
    """Consecutive segments along one axis."""

    kinds = ("Split",)
    constant_inputs = {1: "split"}
    follows_shapes = True

    def applies(self, node: Node, deduction: Deduction) -> str:
        return "its sizes are not constant" if len(node.inputs) > 1 and node.inputs[1] else ""

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = deduction.dimensions(node.inputs[0])
        axis = node.get("axis", 0) % len(x)
        pieces = deduction.cut(x[axis], tuple(deduction.shape(name)[axis] for name in node.outputs))
        return [(*x[:axis], piece, *x[axis + 1 :]) for piece in pieces]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor | tuple[Tensor, ...]:
        pieces: tuple[Tensor, ...] = arguments[0].split(node.get("split"), dim=node.get("axis", 0))
        return pieces if len(pieces) > 1 else pieces[0]

    def general(self, node: Node, inputs: Sequence[Dimensions], outputs: Sequence[Dimensions]) -> Node:
        shapes = [tuple(axis.meta for axis in axes) for axes in (inputs[0], *outputs)]
        return self.specialise(node.without_attributes("num_outputs"), shapes[:1], shapes[1:])

    def specialise(self, node: Node, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> Node:
        axis = node.get("axis", 0) % len(inputs[0])
        return node.with_attributes(split=tuple(shape[axis] for shape in outputs))

    def run_time_attributes(self, node: Node) -> Attributes:
        return freeze_attributes({"axis": node.get("axis", 0)})


@register
class SliceRule(OperatorRule):
    """Ranges of axes with constant bounds: beginnings, ends, and every n-th row of an image."""

    kinds = ("Slice",)
    constant_inputs = {1: "starts", 2: "ends", 3: "axes", 4: "steps"}
    follows_shapes = True

    def applies(self, node: Node, deduction: Deduction) -> str:
        if node.get("starts") is None or node.get("ends") is None or any(node.inputs[1:]):
            return "its bounds are not constant"
        return ""

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = list(deduction.dimensions(node.inputs[0]))
        for axis, (start, end, step) in slice_ranges(node, [d.meta for d in x]).items():
            x[axis] = self._slice(x[axis], start, end, step, deduction)
        return [tuple(x)]

    def _slice(self, axis: Dimension, start: int, end: int, step: int, deduction: Deduction) -> Dimension:
        if start == 0 and end == axis.meta and step == 1:
            return axis
        if step == 1 and start < end:
            before, taken, _ = deduction.cut(axis, (start, end - start, axis.meta - end))
            if start > 0 and end < axis.meta:
                deduction.freeze(before)  # where a piece in the middle begins must be a number
            return taken
        if axis.is_spatial and start == 0 and end == axis.meta and step > 1:
            return Window(axis, 1, step)
        deduction.freeze(axis)
        return Constant(len(range(start, end, step)))

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x: Tensor = arguments[0]
        for axis, (start, end, step) in slice_ranges(node, x.shape).items():
            taken = slice(start, end, step) if step > 0 else list(range(start, end, step))
            x = x[(slice(None),) * axis + (taken,)]
        return x

    def general(self, node: Node, inputs: Sequence[Dimensions], outputs: Sequence[Dimensions]) -> Node:
        """Bounds at an end of an axis are counted from that end."""
        shape = [axis.meta for axis in inputs[0]]
        ranges = slice_ranges(node, shape)
        bounds = {axis: _from_the_end(*ranges[axis], shape[axis]) for axis in ranges}
        starts, ends, steps = zip(*bounds.values(), strict=True)
        return node.with_attributes(starts=starts, ends=ends, axes=tuple(bounds), steps=steps)

    def specialise(self, node: Node, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> Node:
        """Bounds inside an axis follow its active size."""
        starts, ends = list(node.get("starts")), list(node.get("ends"))
        for i, (axis, step) in enumerate(zip(node.get("axes"), node.get("steps"), strict=True)):
            if step != 1:
                continue
            if starts[i] < 0:
                starts[i] = -outputs[0][axis]
            elif ends[i] != END:
                ends[i] = starts[i] + outputs[0][axis]
        return node.with_attributes(starts=tuple(starts), ends=tuple(ends))

    def run_time_attributes(self, node: Node) -> Attributes:
        return freeze_attributes({k: node.get(k) for k in ("starts", "ends", "axes", "steps") if node.get(k)})


def _from_the_end(start: int, end: int, step: int, size: int) -> tuple[int, int, int]:
    """A resolved range whose bounds hold for any size of the axis, where the range runs to the end of the axis."""
    if step > 0 and end == size:
        return (start - size if start and step == 1 else start, END, step)
    return (start, end if end >= 0 else -END, step)


def slice_ranges(node: Node, shape: Sequence[int]) -> dict[int, tuple[int, int, int]]:
    """Axis to (start, end, step) within the axis, as Python's ``slice`` resolves them."""
    starts, ends = node.get("starts"), node.get("ends")
    axes = node.get("axes") or tuple(range(len(starts)))
    steps = node.get("steps") or (1,) * len(starts)
    return {
        axis % len(shape): slice(start, end, step).indices(shape[axis])
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True)
    }


@register
class GatherRule(OperatorRule):
    """Entries of an axis by constant indices; one index drops the axis (a class token, one of q, k and v)."""

    kinds = ("Gather",)
    constant_inputs = {1: "indices"}

    def applies(self, node: Node, deduction: Deduction) -> str:
        return "its indices are computed, or a matrix" if node.get("indices") is None else ""

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = deduction.dimensions(node.inputs[0])
        axis, indices = node.get("axis", 0) % len(x), node.get("indices")
        if isinstance(indices, tuple):
            deduction.freeze(x[axis])
            return [(*x[:axis], Constant(len(indices)), *x[axis + 1 :])]
        self._pin(x[axis], indices % x[axis].meta, deduction)
        return [(*x[:axis], *x[axis + 1 :])]

    def _pin(self, axis: Dimension, index: int, deduction: Deduction) -> None:
        """Freezes the entry and the part of the axis before the entry, so that the index from the front stays valid."""
        before, entry, _ = deduction.cut(axis, (index, 1, axis.meta - index - 1))
        deduction.freeze(before)
        deduction.freeze(entry)

    def general(self, node: Node, inputs: Sequence[Dimensions], outputs: Sequence[Dimensions]) -> Node:
        axis = node.get("axis", 0) % len(inputs[0])
        indices, size = node.get("indices"), inputs[0][axis].meta
        resolved = tuple(i % size for i in indices) if isinstance(indices, tuple) else indices % size
        return node.with_attributes(axis=axis, indices=resolved)

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x: Tensor = arguments[0]
        axis, indices = node.get("axis", 0) % x.ndim, node.get("indices")
        if indices is None:
            table = arguments[1] % x.shape[axis]
            return x.index_select(axis, table.flatten()).reshape(*x.shape[:axis], *table.shape, *x.shape[axis + 1 :])
        if isinstance(indices, tuple):
            return x[(slice(None),) * axis + (list(indices),)]
        return x.select(axis, indices)

    def run_time_attributes(self, node: Node) -> Attributes:
        indices = {} if node.get("indices") is None else {"indices": node.get("indices")}
        return freeze_attributes({"axis": node.get("axis", 0), **indices})
