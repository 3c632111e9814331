"""Pad and Slice: they add a margin to an image, and cut out ranges."""

from collections.abc import Sequence

from autotailor.ir.feature import OperatorFeature
from autotailor.ir.graph import Node
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.runtimes.ncnn.layers.layer import Layer, Params, alone, writes

MODES = {"constant": 0, "edge": 1, "reflect": 2}
"""ONNX's modes to ncnn's types of padding."""


@writes("Pad")
def pad(feature: OperatorFeature) -> Layer:
    """A margin around the last two axes. Parameters 0 to 3 are its sizes at the top, bottom, left and right."""
    alone(feature)
    rank, pads = len(feature.inputs[0]), tuple(feature.attribute("pads", ()))
    mode = str(feature.attribute("mode", "constant"))
    begins, ends = pads[:rank], pads[rank:]
    outer = (*begins[:-2], *ends[:-2])
    if mode not in MODES or len(pads) != 2 * rank or rank < 3 or any(outer) or min(pads) < 0:
        raise ProfilingError(
            f"operator {feature.id}: ncnn cannot pad an activation of shape {list(feature.inputs[0])} to "
            f"{list(feature.outputs[0])} by {list(pads)} ({mode}); it can pad the last two axes by zeros or another "
            "constant, by their edges and by reflection"
        )
    sides = zip(range(4), (begins[-2], ends[-2], begins[-1], ends[-1]), strict=True)
    return Layer("Padding", (*sides, (4, MODES[mode]), (5, 0.0), (6, 0)))


def crop(starts: Sequence[int], ends: Sequence[int], axes: Sequence[int]) -> Layer:
    """A layer that cuts out ranges of axes; axes are counted without the batch."""
    params: Params = ((9, tuple(starts)), (10, tuple(ends)), (11, tuple(axes)))
    return Layer("Crop", params)


@writes("Slice")
def cut(feature: OperatorFeature) -> Layer:
    """Cuts out ranges of axes. A range that is the whole axis costs nothing."""
    from autotailor.ir.operators.layout.splitting import slice_ranges  # needs PyTorch, which opening a runtime does not

    alone(feature)
    shape = feature.inputs[0]
    node = Node("slice", "Slice", (), (), feature.attributes)
    ranges = {axis: bounds for axis, bounds in slice_ranges(node, shape).items() if bounds != (0, shape[axis], 1)}
    if not ranges:
        return Layer("Noop", in_place=True)
    if 0 in ranges or any(step != 1 for _, _, step in ranges.values()):
        raise ProfilingError(
            f"operator {feature.id}: ncnn cannot take every n-th entry of an axis, or some of a batch, from an "
            f"activation of shape {list(shape)}: it cuts out ranges {dict(ranges)} with steps of 1 only"
        )
    starts, ends, _ = zip(*ranges.values(), strict=True)
    return crop(starts, ends, [axis - 1 for axis in ranges])
