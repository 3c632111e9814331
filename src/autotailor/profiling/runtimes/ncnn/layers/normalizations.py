"""Normalisations that are not folded into the weights of the operator before them."""

import math

from autotailor.ir.feature import OperatorFeature
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.runtimes.ncnn.layers.layer import (
    Fragment,
    Layer,
    Params,
    Step,
    alone,
    memory,
    ncnn_shape,
    writes,
)

EPSILON = 1e-5


@writes("LayerNormalization")
def layer_norm(feature: OperatorFeature) -> Layer:
    """Layer normalisation over the last axes, with gain and shift."""
    alone(feature)
    shape = feature.inputs[0]
    first = int(feature.attribute("axis", -1)) % len(shape)
    if first == 0 or (first == 1 and len(shape) > 2):
        raise ProfilingError(
            f"operator {feature.id}: ncnn cannot normalise all axes of an activation of shape {list(shape)} together; "
            "expected fewer axes, the last ones"
        )
    size = math.prod(shape[first:])
    epsilon = float(feature.attribute("epsilon", EPSILON))
    return Layer("LayerNorm", ((0, size), (1, epsilon), (2, int(bool(feature.weights)))), in_place=True)


@writes("BatchNormalization")
def batch_norm(feature: OperatorFeature) -> Layer:
    """Batch normalisation with constant statistics, where no operator before it takes it into its weights."""
    alone(feature)
    epsilon = float(feature.attribute("epsilon", EPSILON))
    return Layer("BatchNorm", ((0, feature.inputs[0][1]), (1, epsilon)), in_place=True)


@writes("GroupNormalization")
def group_norm(feature: OperatorFeature) -> Layer | Fragment:
    """Normalisation of groups of channels, each group with its own statistics over the image.

    Where the shift is not one number for each channel, the gain is applied by a separate product.
    """
    alone(feature)
    epsilon = float(feature.attribute("epsilon", EPSILON))
    shape = ncnn_shape(feature.inputs[0])
    params: Params = ((0, int(feature.attribute("num_groups"))), (1, shape[0]), (2, epsilon))
    if math.prod(feature.weights[-1]) == shape[0]:
        return Layer("GroupNorm", (*params, (3, 1)), in_place=True)
    gain = feature.weights[-2]
    return (
        Step(Layer("GroupNorm", (*params, (3, 0)), in_place=True), ("i0",), ("t0",), (shape,)),
        memory(gain, "t1"),
        Step(Layer("BinaryOp", ((0, 2),)), ("t0", "t1"), ("o0",), (shape, gain)),
    )


@writes("InstanceNormalization")
def instance_norm(feature: OperatorFeature) -> Layer:
    """Normalisation of each channel with its own statistics over the image."""
    alone(feature)
    if len(feature.inputs[0]) != 4:
        raise ProfilingError(
            f"operator {feature.id}: ncnn normalises the channels of images only, not the channels of an activation of "
            f"shape {list(feature.inputs[0])}"
        )
    epsilon = float(feature.attribute("epsilon", EPSILON))
    return Layer("InstanceNorm", ((0, feature.inputs[0][1]), (1, epsilon), (2, 1)), in_place=True)
