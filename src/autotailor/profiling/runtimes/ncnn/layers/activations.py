"""Activations in ncnn: layers of their own, or activation_type (9) and activation_params (10) of a fused layer."""

import math

from autotailor.ir.feature import Attributes, Follower, OperatorFeature
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.runtimes.ncnn.layers.layer import Layer, Params, alone, writes


def activation(feature: OperatorFeature) -> Params:
    """Parameters 9 and 10 of the fused activation."""
    if not feature.followers:
        return ()
    if len(feature.followers) > 1:
        raise ProfilingError(f"operator {feature.id}: ncnn fuses one activation, not {len(feature.followers)}")
    follower = feature.followers[0]
    number, values = _activation_number(feature, follower)
    return ((9, number),) + (((10, values),) if values else ())


def _activation_number(feature: OperatorFeature, follower: Follower) -> tuple[int, tuple[float, ...]]:
    attributes = dict(follower.attributes)
    if follower.kind == "LeakyRelu":
        return 2, (float(attributes.get("alpha", 0.01)),)  # type: ignore[arg-type]
    if follower.kind == "Clip":
        return 3, bounds(follower.attributes)
    numbers = {"Relu": 1, "Sigmoid": 4, "Mish": 5}
    if follower.kind not in numbers:
        raise ProfilingError(
            f"operator {feature.id}: ncnn does not fuse {feature.kind} with {follower.kind}; "
            "enumerate operators with the fusion rules of this runtime"
        )
    return numbers[follower.kind], ()


def bounds(attributes: Attributes) -> tuple[float, float]:
    """Limits of a Clip; a missing limit becomes the largest number of single precision."""
    values = dict(attributes)
    largest = 3.4028234663852886e38
    return float(values.get("min", -largest)), float(values.get("max", largest))  # type: ignore[arg-type]


@writes("Relu", "Sigmoid", "Tanh", "Mish", "Gelu", "Swish", "Erf", "Softplus")
def unary(feature: OperatorFeature) -> Layer:
    """Activations without parameters."""
    alone(feature)
    types = {"Relu": "ReLU", "Tanh": "TanH", "Gelu": "GELU"}
    return Layer(types.get(feature.kind, feature.kind), in_place=True)


@writes("LeakyRelu")
def leaky_relu(feature: OperatorFeature) -> Layer:
    """ReLU with a slope below zero."""
    alone(feature)
    return Layer("ReLU", ((0, float(feature.attribute("alpha", 0.01))),), in_place=True)


@writes("Elu", "Selu")
def exponential(feature: OperatorFeature) -> Layer:
    """Activations that are exponential below zero."""
    alone(feature)
    if feature.kind == "Elu":
        return Layer("ELU", ((0, float(feature.attribute("alpha", 1.0))),), in_place=True)
    alpha, gamma = feature.attribute("alpha", 1.6732632), feature.attribute("gamma", 1.0507010)
    return Layer("SELU", ((0, float(alpha)), (1, float(gamma))), in_place=True)


@writes("PRelu")
def parametric_relu(feature: OperatorFeature) -> Layer:
    """ReLU with one slope below zero for each channel, or one for all channels."""
    alone(feature)
    if not feature.weights:
        raise ProfilingError(
            f"operator {feature.id}: ncnn reads the slopes of a PRelu as weights, not as an activation"
        )
    return Layer("PReLU", ((0, math.prod(feature.weights[0])),), in_place=True)


@writes("Clip")
def clip(feature: OperatorFeature) -> Layer:
    """Limits of a range, as in ReLU6."""
    alone(feature)
    low, high = bounds(feature.attributes)
    return Layer("Clip", ((0, low), (1, high)), in_place=True)


@writes("HardSwish", "HardSigmoid")
def hard(feature: OperatorFeature) -> Layer:
    """Piecewise linear activations; ncnn's alpha and beta are those of ONNX's HardSigmoid."""
    alone(feature)
    alpha = feature.attribute("alpha", 0.2 if feature.kind == "HardSigmoid" else 1 / 6)
    return Layer(feature.kind, ((0, float(alpha)), (1, float(feature.attribute("beta", 0.5)))), in_place=True)


@writes("Softmax")
def softmax(feature: OperatorFeature) -> Layer:
    """Softmax over one axis."""
    alone(feature)
    axis = int(feature.attribute("axis", -1)) % len(feature.inputs[0])
    return Layer("Softmax", ((0, axis - 1), (1, 1)), in_place=True)
