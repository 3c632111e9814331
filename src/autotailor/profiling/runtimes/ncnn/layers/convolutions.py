"""Convolutions and pooling: operators with a sliding window."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from autotailor.ir.feature import OperatorFeature, Shape, freeze_attributes
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.runtimes.ncnn.layers.activations import activation
from autotailor.profiling.runtimes.ncnn.layers.layer import Fragment, Layer, Value, alone, chain, ncnn_shape, writes
from autotailor.profiling.runtimes.ncnn.layers.views import permute

LOWEST = -3.4028234663852886e38
"""The lowest number of single precision, which is never the largest of a window."""


def window(feature: OperatorFeature, kernel: Shape) -> tuple[Shape, Shape, Shape]:
    """Strides, dilations and pads (top, left, bottom, right) of a 2-d window."""
    if len(kernel) != 2:
        raise ProfilingError(f"operator {feature.id}: kernel {list(kernel)} of {feature.kind}, expected two dimensions")
    strides = tuple(feature.attribute("strides", (1, 1)))
    dilations = tuple(feature.attribute("dilations", (1, 1)))
    pads = tuple(feature.attribute("pads", (0, 0, 0, 0)))
    return strides, dilations, pads


@writes("Conv")
def convolution(feature: OperatorFeature) -> Layer:
    """Dense, grouped and depthwise convolutions, with a bias and a fused activation."""
    weight = feature.weights[0]
    kernel = weight[2:]
    strides, dilations, pads = window(feature, kernel)
    group = int(feature.attribute("group", 1))
    params: list[tuple[int, Value]] = [(0, weight[0]), (1, kernel[1]), (11, kernel[0])]
    params += [(12, dilations[0]), (13, strides[0]), (14, pads[0])]
    params += [(2, dilations[1]), (3, strides[1]), (4, pads[1])]
    if pads[2:] != pads[:2]:
        params += [(15, pads[3]), (16, pads[2])]
    params += [(5, int(len(feature.weights) > 1)), (6, math.prod(weight))]
    params += [(7, group)] if group > 1 else []
    params += activation(feature)
    return Layer("ConvolutionDepthWise" if group > 1 else "Convolution", tuple(params))


@writes("MaxPool", "AveragePool")
def pooling(feature: OperatorFeature) -> Layer | Fragment:
    """Pooling over a window, behind a Padding where pads before and behind an axis differ (see ``preparation``)."""
    alone(feature)
    kernel = tuple(feature.attribute("kernel_shape"))
    strides, dilations, pads = window(feature, kernel)
    average = feature.kind == "AveragePool"
    if needs_margin(feature.kind, dict(feature.attributes)):
        top, left, bottom, right = pads
        channels, height, width = ncnn_shape(feature.inputs[0])
        shape = (channels, height + top + bottom, width + left + right)
        sides = zip(range(4), (top, bottom, left, right), strict=True)
        margin = Layer("Padding", (*sides, (4, 0), (5, 0.0 if average else LOWEST), (6, 0)))
        attributes = freeze_attributes({**dict(feature.attributes), "pads": (0, 0, 0, 0)})
        inner = pooling(replace(feature, inputs=((1, *shape),), attributes=attributes))
        assert isinstance(inner, Layer)
        return chain(feature, (margin, shape), (inner, ncnn_shape(feature.outputs[0])))
    if set(dilations) != {1} or not _pools_alike(feature, kernel, strides, pads):
        raise ProfilingError(
            f"operator {feature.id}: ncnn cannot compute {feature.kind} with the kernel {list(kernel)}, strides "
            f"{list(strides)}, pads {list(pads)} and dilations {list(dilations)} as ONNX does; expected equal pads at "
            "both ends where a mean leaves them out or windows are rounded up, no dilation, and windows that all begin "
            "within the image"
        )
    params: list[tuple[int, Value]] = [(0, int(average)), (1, kernel[1]), (11, kernel[0])]
    params += [(12, strides[0]), (13, pads[0]), (2, strides[1]), (3, pads[1])]
    params += [(5, int(not feature.attribute("ceil_mode", 0)))]
    if average:
        params += [(6, int(feature.attribute("count_include_pad", 0)))]
    return Layer("Pooling", tuple(params))


def needs_margin(kind: str, attributes: Mapping[str, Any]) -> bool:
    """Whether a pooling has other pads before than behind an axis that a Pad in front of it can say exactly."""
    pads = tuple(attributes.get("pads") or ())
    says_pads = kind == "MaxPool" or (kind == "AveragePool" and bool(attributes.get("count_include_pad", 0)))
    return says_pads and not attributes.get("ceil_mode", 0) and pads[: len(pads) // 2] != pads[len(pads) // 2 :]


def _pools_alike(feature: OperatorFeature, kernel: Shape, strides: Shape, pads: Shape) -> bool:
    """Whether ncnn has the same windows as ONNX, and divides their sums by the same numbers.

    With ``ceil_mode``, ONNX leaves out a last window that begins behind the image, and a mean that counts pads does not
    count what such a window exceeds the pads by. ncnn does neither.
    """
    if pads[:2] != pads[2:]:
        return False
    sides = zip(feature.inputs[0][2:], kernel, strides, pads[:2], strict=True)
    rests = [(side + 2 * pad - size, stride) for side, size, stride, pad in sides]
    is_ceil = bool(feature.attribute("ceil_mode", 0))
    pooled = tuple((-(-rest // stride) if is_ceil else rest // stride) + 1 for rest, stride in rests)
    counts_pads = feature.kind == "AveragePool" and bool(feature.attribute("count_include_pad", 0))
    is_exceeded = is_ceil and any(rest % stride for rest, stride in rests)
    return pooled == tuple(feature.outputs[0][2:]) and not (counts_pads and is_exceeded)


@writes("GlobalAveragePool", "GlobalMaxPool")
def global_pooling(feature: OperatorFeature) -> Layer | Fragment:
    """Global pooling, which writes a vector: a fused Flatten needs no layer, and a fused Transpose needs a map."""
    made = Layer("Pooling", ((0, int(feature.kind == "GlobalAveragePool")), (4, 1)))
    if not any(follower.kind == "Transpose" for follower in feature.followers):
        return made
    perm = dict(feature.followers[0].attributes)["perm"]
    channels = feature.inputs[0][1]
    as_map = Layer("Reshape", ((12, 0), (13, 0), (6, f"1,1,//({channels},0n),0n")))
    order = permute(feature, [int(axis) - 1 for axis in perm[1:]])  # type: ignore[index, union-attr]
    parts = ((made, (channels,)), (as_map, (channels, 1, 1)), (order, ncnn_shape(feature.outputs[0])))
    return chain(feature, *parts)
