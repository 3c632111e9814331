"""OperatorFeature -> the ncnn layer that pnnx writes for it. A new kind is one small function here.

Example: ``Conv`` 64 -> 64, 3x3, pads 1, with a bias and a fused Relu is::

    Convolution 0=64 1=3 11=3 12=1 13=1 14=1 2=1 3=1 4=1 5=1 6=36864 9=1
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from autotailor.ir.feature import Attributes, Follower, OperatorFeature, Shape
from autotailor.profiling.errors import ProfilingError

Value = int | float | tuple[int, ...] | tuple[float, ...]


@dataclass(frozen=True)
class Layer:
    """One line of a `.param`, without its name and blobs.

    Attributes:
        type: ncnn's layer type.
        params: (id, value) pairs; a tuple is ncnn's array.
        in_place: ncnn runs it on its input's memory.
    """

    type: str
    params: tuple[tuple[int, Value], ...] = ()
    in_place: bool = False

    def line(self, name: str, inputs: list[str], outputs: list[str]) -> str:
        """The line of a `.param`."""
        words = [self.type, name, str(len(inputs)), str(len(outputs)), *inputs, *outputs]
        return " ".join(words + [_param_text(key, value) for key, value in self.params])


def _param_text(key: int, value: Value) -> str:
    if isinstance(value, tuple):
        return f"{-23300 - key}={len(value)}," + ",".join(str(v) for v in value)
    return f"{key}={value}"


Writer = Callable[[OperatorFeature], Layer]
LAYERS: dict[str, Writer] = {}
"""ONNX operator kind to the function that writes it."""

BINARY = {"Add": 0, "Sub": 1, "Mul": 2, "Div": 3}


def writes(*kinds: str) -> Callable[[Writer], Writer]:
    """Registers a writer for kinds of operators."""

    def register(writer: Writer) -> Writer:
        LAYERS.update(dict.fromkeys(kinds, writer))
        return writer

    return register


def layer(feature: OperatorFeature) -> Layer:
    """The layer of a fused operator.

    Raises:
        ProfilingError: no writer knows its kind, or it is more than ncnn runs as one layer.
    """
    if feature.kind not in LAYERS:
        raise ProfilingError(
            f"operator {feature.id}: ncnn layers of kind {feature.kind} are not written yet; known are "
            f"{', '.join(sorted(LAYERS))}: add a function to profiling/runtimes/ncnn_layers.py"
        )
    return LAYERS[feature.kind](feature)


def ncnn_shape(shape: Shape) -> Shape:
    """Shape without the batch, which ncnn does not know: ``[1, c, h, w] -> (c, h, w)``, ``[1, n] -> (n,)``."""
    if len(shape) < 2 or shape[0] != 1:
        raise ProfilingError(f"an activation of shape {list(shape)} cannot be measured: expected a batch of 1 first")
    return tuple(shape[1:])


def _alone(feature: OperatorFeature) -> None:
    if feature.followers:
        kinds = ", ".join(follower.kind for follower in feature.followers)
        raise ProfilingError(
            f"operator {feature.id}: ncnn does not fuse {feature.kind} with {kinds}; "
            "enumerate operators with the fusion rules of this runtime"
        )


def _activation(feature: OperatorFeature) -> tuple[tuple[int, Value], ...]:
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
        return 3, _bounds(follower.attributes)
    numbers = {"Relu": 1, "Sigmoid": 4, "Mish": 5}
    if follower.kind not in numbers:
        raise ProfilingError(
            f"operator {feature.id}: ncnn does not fuse {feature.kind} with {follower.kind}; "
            "enumerate operators with the fusion rules of this runtime"
        )
    return numbers[follower.kind], ()


def _bounds(attributes: Attributes) -> tuple[float, float]:
    values = dict(attributes)
    largest = 3.4028234663852886e38
    return float(values.get("min", -largest)), float(values.get("max", largest))  # type: ignore[arg-type]


def _window(feature: OperatorFeature, kernel: Shape) -> tuple[Shape, Shape, Shape]:
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
    strides, dilations, pads = _window(feature, kernel)
    group = int(feature.attribute("group", 1))
    params: list[tuple[int, Value]] = [(0, weight[0]), (1, kernel[1]), (11, kernel[0])]
    params += [(12, dilations[0]), (13, strides[0]), (14, pads[0])]
    params += [(2, dilations[1]), (3, strides[1]), (4, pads[1])]
    if pads[2:] != pads[:2]:
        params += [(15, pads[3]), (16, pads[2])]
    params += [(5, int(len(feature.weights) > 1)), (6, math.prod(weight))]
    params += [(7, group)] if group > 1 else []
    params += _activation(feature)
    return Layer("ConvolutionDepthWise" if group > 1 else "Convolution", tuple(params))


@writes("Gemm")
def inner_product(feature: OperatorFeature) -> Layer:
    """A fully connected layer on a vector, with a bias and a fused activation."""
    bias = int(len(feature.weights) > 1)
    params = ((0, feature.outputs[0][-1]), (1, bias), (2, math.prod(feature.weights[0])))
    return Layer("InnerProduct", params + _activation(feature))


@writes("MatMul")
def matrix_product(feature: OperatorFeature) -> Layer:
    """A product with a constant matrix, or of two activations."""
    _alone(feature)
    if not feature.weights:
        return Layer("MatMul")
    if len(feature.inputs[0]) == 2:
        return Layer("InnerProduct", ((0, feature.outputs[0][-1]), (1, 0), (2, math.prod(feature.weights[0]))))
    rows, (k, n) = feature.outputs[0][-2], feature.weights[0][-2:]
    return Layer("Gemm", ((2, 0), (3, 0), (5, 1), (6, 1), (7, rows), (8, n), (9, k), (10, -1)))


@writes("MaxPool", "AveragePool")
def pooling(feature: OperatorFeature) -> Layer:
    """Pooling over a window."""
    _alone(feature)
    kernel = tuple(feature.attribute("kernel_shape"))
    strides, _, pads = _window(feature, kernel)
    average = feature.kind == "AveragePool"
    params: list[tuple[int, Value]] = [(0, int(average)), (1, kernel[1]), (11, kernel[0])]
    params += [(12, strides[0]), (13, pads[0]), (2, strides[1]), (3, pads[1])]
    params += [(5, int(not feature.attribute("ceil_mode", 0)))]
    if average:
        params += [(6, int(feature.attribute("count_include_pad", 0)))]
    return Layer("Pooling", tuple(params))


@writes("GlobalAveragePool")
def global_pooling(feature: OperatorFeature) -> Layer:
    """Global average pooling; a Flatten behind it is no layer, the result is a vector."""
    if any(follower.kind != "Flatten" for follower in feature.followers):
        _alone(feature)
    return Layer("Pooling", ((0, 1), (4, 1)))


@writes("ReduceMean")
def mean(feature: OperatorFeature) -> Layer:
    """Mean over axes of an activation (squeeze and excitation)."""
    _alone(feature)
    rank = len(feature.inputs[0])
    axes = tuple(int(axis) % rank for axis in feature.attribute("axes", range(1, rank)))
    keep = int(feature.attribute("keepdims", 1))
    return Layer("Reduction", ((0, 3), (1, 0), (3, tuple(axis - 1 for axis in axes)), (4, keep), (5, 1)))


@writes(*BINARY)
def binary(feature: OperatorFeature) -> Layer:
    """Elementwise arithmetic of two activations (with broadcasting), or of one and a scalar."""
    _alone(feature)
    operation: tuple[tuple[int, Value], ...] = ((0, BINARY[feature.kind]),)
    if len(feature.inputs) == 2:
        return Layer("BinaryOp", operation)
    if feature.weights and math.prod(feature.weights[0]) != 1:
        raise ProfilingError(
            f"operator {feature.id}: {feature.kind} with a constant of shape {list(feature.weights[0])} is not written "
            "yet; only activations and scalars are: extend profiling/runtimes/ncnn_layers.py"
        )
    scalar = float(feature.attribute("value", 1.0))
    return Layer("BinaryOp", (*operation, (1, 1), (2, scalar)), in_place=True)


@writes("Relu", "Sigmoid", "Tanh", "Mish", "Gelu", "Swish")
def unary(feature: OperatorFeature) -> Layer:
    """Activations without parameters."""
    _alone(feature)
    types = {"Relu": "ReLU", "Tanh": "TanH", "Gelu": "GELU"}
    return Layer(types.get(feature.kind, feature.kind), in_place=True)


@writes("LeakyRelu")
def leaky_relu(feature: OperatorFeature) -> Layer:
    """ReLU with a slope."""
    _alone(feature)
    return Layer("ReLU", ((0, float(feature.attribute("alpha", 0.01))),), in_place=True)


@writes("Clip")
def clip(feature: OperatorFeature) -> Layer:
    """ReLU6 and other bounds."""
    _alone(feature)
    low, high = _bounds(feature.attributes)
    return Layer("Clip", ((0, low), (1, high)), in_place=True)


@writes("HardSwish", "HardSigmoid")
def hard(feature: OperatorFeature) -> Layer:
    """Piecewise linear activations; ncnn's alpha and beta are those of ONNX's HardSigmoid."""
    _alone(feature)
    alpha = feature.attribute("alpha", 0.2 if feature.kind == "HardSigmoid" else 1 / 6)
    return Layer(feature.kind, ((0, float(alpha)), (1, float(feature.attribute("beta", 0.5)))), in_place=True)


@writes("Softmax")
def softmax(feature: OperatorFeature) -> Layer:
    """Softmax over one axis."""
    _alone(feature)
    axis = int(feature.attribute("axis", -1)) % len(feature.inputs[0])
    return Layer("Softmax", ((0, axis - 1), (1, 1)), in_place=True)


@writes("Concat")
def concat(feature: OperatorFeature) -> Layer:
    """Concatenation along one axis."""
    _alone(feature)
    return Layer("Concat", ((0, int(feature.attribute("axis", 1)) % len(feature.inputs[0]) - 1),))


@writes("Flatten")
def flatten(feature: OperatorFeature) -> Layer:
    """An activation as a vector: costs an unpacking of the layout."""
    _alone(feature)
    return Layer("Flatten")


@writes("Reshape")
def reshape(feature: OperatorFeature) -> Layer:
    """An activation in another shape."""
    _alone(feature)
    shape = ncnn_shape(feature.outputs[0])
    if len(shape) > 3:
        raise ProfilingError(f"operator {feature.id}: Reshape to {list(shape)}, expected at most 3 dimensions")
    return Layer("Reshape", tuple(enumerate(reversed(shape))))
