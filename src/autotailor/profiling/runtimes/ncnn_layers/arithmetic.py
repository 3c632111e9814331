"""Elementwise arithmetic."""

from __future__ import annotations

import math

from autotailor.ir.feature import OperatorFeature, Shape
from autotailor.profiling.runtimes.ncnn_layers.layer import (
    Fragment,
    Layer,
    Params,
    Step,
    alone,
    memory,
    ncnn_shape,
    writes,
)

BINARY = {"Add": 0, "Sub": 1, "Mul": 2, "Div": 3}


@writes(*BINARY)
def binary(feature: OperatorFeature) -> Layer | Fragment:
    """Arithmetic of two activations (with broadcasting), of one and a constant, or of one and a scalar."""
    alone(feature)
    operation: Params = ((0, BINARY[feature.kind]),)
    if len(feature.inputs) == 2:
        return Layer("BinaryOp", operation)
    if not feature.weights or math.prod(feature.weights[0]) == 1:
        return Layer("BinaryOp", (*operation, (1, 1), (2, 1.0)), in_place=True)
    held = _constant_shape(feature.weights[0], len(feature.inputs[0]))
    shapes = (ncnn_shape(feature.inputs[0]), held)
    return (memory(held, "t0"), Step(Layer("BinaryOp", operation), ("i0", "t0"), ("o0",), shapes))


def _constant_shape(shape: Shape, rank: int) -> Shape:
    """Shape of a constant as pnnx holds it: without the batch."""
    return shape[1:] if len(shape) == rank else shape
