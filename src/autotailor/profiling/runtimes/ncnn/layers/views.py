"""Operators that move data: Reshape, Transpose, Concat, Split, Gather ...

Axes are numbered without the batch, the outermost first, as ncnn does.
"""

from __future__ import annotations

from collections.abc import Sequence

from autotailor.ir.feature import OperatorFeature, Shape
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.runtimes.ncnn.layers.layer import (
    Fragment,
    Layer,
    Step,
    alone,
    chain,
    memory,
    ncnn_shape,
    writes,
)
from autotailor.profiling.runtimes.ncnn.layers.padding import crop

INNERMOST_FIRST = {
    2: ("wh", "hw"),
    3: ("whc", "hwc", "wch", "cwh", "hcw", "chw"),
    4: (
        "whdc", "hwdc", "wdhc", "dwhc", "hdwc", "dhwc", "whcd", "hwcd", "wchd", "cwhd", "hcwd", "chwd",
        "wdch", "dwch", "wcdh", "cwdh", "dcwh", "cdwh", "hdcw", "dhcw", "hcdw", "chdw", "dchw", "cdhw",
    ),
}  # fmt: skip
"""Permute's orders by the number of axes: the axes of the input as they stand in the output, innermost first."""
AXES = {2: "hw", 3: "chw", 4: "cdhw"}


def _axis(feature: OperatorFeature, default: int) -> int:
    """The attribute ``axis`` without the batch."""
    return int(feature.attribute("axis", default)) % len(feature.inputs[0]) - 1


def _axes(feature: OperatorFeature, rank: int) -> tuple[int, ...]:
    """The attribute ``axes`` without the batch."""
    return tuple(int(axis) % rank - 1 for axis in feature.attribute("axes"))


def permute(feature: OperatorFeature, order: Sequence[int]) -> Layer:
    """Axes (without the batch, outermost first) in another order."""
    names = AXES.get(len(order))
    if names is None:
        raise ProfilingError(
            f"operator {feature.id}: ncnn cannot transpose an activation of shape {list(feature.inputs[0])}; "
            "expected two to four axes behind the batch"
        )
    wanted = "".join(names[axis] for axis in reversed(order))
    return Layer("Permute", ((0, INNERMOST_FIRST[len(order)].index(wanted)),))


def reshape_to(shape: Shape) -> Layer:
    """A new shape, ncnn's axes from the innermost."""
    keys = {1: (0,), 2: (0, 1), 3: (0, 1, 2), 4: (0, 1, 11, 2)}[len(shape)]
    return Layer("Reshape", tuple(zip(keys, reversed(shape), strict=True)))


@writes("Transpose")
def transpose(feature: OperatorFeature) -> Layer | Fragment:
    """Axes in another order; a Flatten behind it is a layer of its own."""
    made = permute(feature, [int(axis) - 1 for axis in feature.attribute("perm")[1:]])
    if not feature.followers:
        return made
    before = tuple(feature.inputs[0][int(axis)] for axis in feature.attribute("perm"))
    return chain(feature, (made, ncnn_shape(before)), (Layer("Flatten"), ncnn_shape(feature.outputs[0])))


@writes("Reshape")
def reshape(feature: OperatorFeature) -> Layer:
    """An activation in another shape."""
    alone(feature)
    return reshape_to(ncnn_shape(feature.outputs[0]))


@writes("Flatten")
def flatten(feature: OperatorFeature) -> Layer:
    """An activation as a vector: costs an unpacking of the layout."""
    alone(feature)
    return Layer("Flatten")


@writes("Squeeze")
def squeeze(feature: OperatorFeature) -> Layer:
    """Axes of one are dropped."""
    alone(feature)
    return Layer("Squeeze", ((3, _axes(feature, len(feature.inputs[0]))),))


@writes("Unsqueeze")
def unsqueeze(feature: OperatorFeature) -> Layer:
    """Axes of one are put in."""
    alone(feature)
    return Layer("ExpandDims", ((3, _axes(feature, len(feature.outputs[0]))),))


@writes("Concat")
def concat(feature: OperatorFeature) -> Layer | Fragment:
    """Concatenation along one axis, of activations and of constants (a class token)."""
    alone(feature)
    made = Layer("Concat", ((0, _axis(feature, 1)),))
    if not feature.weights:
        return made
    shapes = tuple(ncnn_shape(shape) for shape in (*feature.inputs, *feature.weights))
    blobs = tuple(f"i{i}" for i in range(len(feature.inputs)))
    constants = tuple(f"t{i}" for i in range(len(feature.weights)))
    steps = (memory(ncnn_shape(w), blob) for w, blob in zip(feature.weights, constants, strict=True))
    return (*steps, Step(made, (*constants, *blobs), ("o0",), shapes))


@writes("Split")
def split(feature: OperatorFeature) -> Layer:
    """Consecutive pieces of one axis."""
    alone(feature)
    axis = _axis(feature, 0)
    return Layer("Slice", ((0, tuple(ncnn_shape(shape)[axis] for shape in feature.outputs)), (1, axis)))


@writes("Gather")
def gather(feature: OperatorFeature) -> Fragment:
    """One entry of an axis, which it drops."""
    alone(feature)
    index, axis = feature.attribute("indices"), _axis(feature, 0)
    if isinstance(index, tuple):
        raise ProfilingError(
            f"operator {feature.id}: ncnn cannot gather the entries {list(index)} of an axis, only one of them"
        )
    shape = ncnn_shape(feature.inputs[0])
    cropped = (*shape[:axis], 1, *shape[axis + 1 :])
    return chain(
        feature,
        (crop((int(index),), (int(index) + 1,), (axis,)), cropped),
        (Layer("Squeeze", ((3, (axis,)),)), ncnn_shape(feature.outputs[0])),
    )


@writes("ChannelShuffle")
def channel_shuffle(feature: OperatorFeature) -> Layer:
    """Channels of some groups interleaved."""
    alone(feature)
    return Layer("ShuffleChannel", ((0, int(feature.attribute("group"))), (1, 0)))
