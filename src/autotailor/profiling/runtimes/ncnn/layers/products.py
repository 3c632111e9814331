"""Products with matrices, and attention."""

import math

from autotailor.ir.feature import OPERANDS, OperatorFeature
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.runtimes.ncnn.layers.activations import activation
from autotailor.profiling.runtimes.ncnn.layers.layer import Fragment, Layer, Params, Step, alone, ncnn_shape, writes


@writes("Gemm")
def inner_product(feature: OperatorFeature) -> Layer:
    """A fully connected layer on a vector, with a bias and a fused activation."""
    bias = int(len(feature.weights) > 1)
    params = ((0, feature.outputs[0][-1]), (1, bias), (2, math.prod(feature.weights[0])))
    return Layer("InnerProduct", params + activation(feature))


@writes("MatMul")
def matrix_product(feature: OperatorFeature) -> Layer | Fragment:
    """A product of an activation with a constant matrix, perhaps with a bias, or a product of two activations."""
    if feature.attribute(OPERANDS) is not None:
        raise ProfilingError(
            f"operator {feature.id}: a product of a constant matrix with an activation, in this order, is not written "
            "yet: extend profiling/runtimes/ncnn/layers"
        )
    if feature.weights and len(feature.inputs[0]) == 2:
        return inner_product(feature)
    alone(feature)
    if not feature.weights:
        return Layer("MatMul")
    if len(feature.inputs[0]) == 3:
        return Layer("Gemm", _gemm(feature, feature.inputs[0][1]))
    return _flattened_product(feature)


@writes("TransposedMatMul")
def transposed_product(feature: OperatorFeature) -> Layer:
    """A product of two activations, of which the second has its last two axes exchanged."""
    alone(feature)
    return Layer("MatMul", ((0, 1),))


def _gemm(feature: OperatorFeature, rows: int) -> Params:
    """Parameters of the product of an activation's rows with a constant matrix.

    Parameter 10 tells how the constant bias is broadcast, and is -1 without a bias.
    """
    k, n = feature.weights[0][-2:]
    bias = 4 if len(feature.weights) > 1 else -1
    return ((10, bias), (2, 0), (3, 1), (4, 0), (5, 1), (6, 1), (7, rows), (8, n), (9, k))


def _flattened_product(feature: OperatorFeature) -> Fragment:
    """A product for an activation of three axes, whose first two become rows.

    The second Reshape restores the axes, and reads the original activation for its shape.
    """
    shape = ncnn_shape(feature.inputs[0])
    if len(shape) != 3:
        raise ProfilingError(
            f"operator {feature.id}: a product of an activation of shape {list(feature.inputs[0])} with a matrix is "
            "not written yet, expected two or three axes behind the batch: extend profiling/runtimes/ncnn/layers"
        )
    rows, (k, n) = math.prod(shape[:-1]), feature.weights[0][-2:]
    return (
        Step(Layer("Split"), ("i0",), ("t1", "t2")),
        Step(Layer("Reshape", ((6, "0w,-1"),)), ("t1",), ("t3",), (shape,)),
        Step(Layer("Gemm", _gemm(feature, rows)), ("t3",), ("t4",), ((rows, k),)),
        Step(Layer("Reshape", ((6, "0w,1h,1c"),)), ("t4", "t2"), ("o0",), ((rows, n), shape)),
    )


@writes("Attention")
def attention(feature: OperatorFeature) -> Layer:
    """Softmax of the scaled products of queries and keys, times values, in one layer without a mask."""
    alone(feature)
    return Layer("SDPA", ((5, 0),))
