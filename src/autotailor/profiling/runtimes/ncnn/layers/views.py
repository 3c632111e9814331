"""Operators that move data: Reshape, Transpose, Concat, Split, Gather ...

Axes are numbered as in ncnn: without the batch, and the outermost axis first.
"""

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
"""ncnn's orders of Permute by the number of axes. Each lists the input's axes as in the output, innermost first."""
AXES = {2: "hw", 3: "chw", 4: "cdhw"}


def _axis(feature: OperatorFeature, default: int) -> int:
    """The attribute ``axis``, counted without the batch."""
    return int(feature.attribute("axis", default)) % len(feature.inputs[0]) - 1


def _axes(feature: OperatorFeature, rank: int) -> tuple[int, ...]:
    """The attribute ``axes``, counted without the batch."""
    return tuple(int(axis) % rank - 1 for axis in feature.attribute("axes"))


def permute(feature: OperatorFeature, order: Sequence[int]) -> Layer:
    """A layer that puts axes into another order."""
    names = AXES.get(len(order))
    if names is None:
        raise ProfilingError(
            f"operator {feature.id}: ncnn cannot transpose an activation of shape {list(feature.inputs[0])}; "
            "expected two to four axes behind the batch"
        )
    axes = "".join(names[axis] for axis in reversed(order))
    return Layer("Permute", ((0, INNERMOST_FIRST[len(order)].index(axes)),))


def reshape_to(shape: Shape) -> Layer:
    """A layer that gives an activation a new shape."""
    keys = {1: (0,), 2: (0, 1), 3: (0, 1, 2), 4: (0, 1, 11, 2)}[len(shape)]
    return Layer("Reshape", tuple(zip(keys, reversed(shape), strict=True)))


@writes("Transpose")
def transpose(feature: OperatorFeature) -> Layer | Fragment:
    """Puts axes into another order; a fused Flatten is a second layer."""
    made = permute(feature, [int(axis) - 1 for axis in feature.attribute("perm")[1:]])
    if not feature.followers:
        return made
    before = tuple(feature.inputs[0][int(axis)] for axis in feature.attribute("perm"))
    return chain(feature, (made, ncnn_shape(before)), (Layer("Flatten"), ncnn_shape(feature.outputs[0])))


@writes("Reshape")
def reshape(feature: OperatorFeature) -> Layer:
    """Gives an activation another shape."""
    alone(feature)
    return reshape_to(ncnn_shape(feature.outputs[0]))


@writes("Flatten")
def flatten(feature: OperatorFeature) -> Layer:
    """Turns an activation into a vector, which unpacks its layout and therefore takes time."""
    alone(feature)
    return Layer("Flatten")


@writes("Squeeze")
def squeeze(feature: OperatorFeature) -> Layer:
    """Drops axes of size 1."""
    alone(feature)
    return Layer("Squeeze", ((3, _axes(feature, len(feature.inputs[0]))),))


@writes("Unsqueeze")
def unsqueeze(feature: OperatorFeature) -> Layer:
    """Inserts axes of size 1."""
    alone(feature)
    return Layer("ExpandDims", ((3, _axes(feature, len(feature.outputs[0]))),))


@writes("Concat")
def concat(feature: OperatorFeature) -> Layer | Fragment:
    """Concatenates activations, and constants such as a class token, along one axis."""
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
    """Splits one axis into consecutive pieces."""
    alone(feature)
    axis = _axis(feature, 0)
    return Layer("Slice", ((0, tuple(ncnn_shape(shape)[axis] for shape in feature.outputs)), (1, axis)))


@writes("Gather")
def gather(feature: OperatorFeature) -> Fragment:
    """Takes one entry of an axis, and drops the axis."""
    alone(feature)
    index, axis = feature.attribute("indices"), _axis(feature, 0)
    if index is None:
        raise ProfilingError(
            f"operator {feature.id}: ncnn cannot gather entries by a table of positions, only a single entry"
        )
    if isinstance(index, tuple):
        raise ProfilingError(
            f"operator {feature.id}: ncnn cannot gather the entries {list(index)} of an axis, only a single entry"
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
    """Interleaves the channels of groups."""
    alone(feature)
    return Layer("ShuffleChannel", ((0, int(feature.attribute("group"))), (1, 0)))
