"""Elementwise arithmetic."""

import math

from autotailor.ir.feature import OperatorFeature, Shape
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
from autotailor.profiling.runtimes.ncnn.layers.views import reshape_to

BINARY = {"Add": 0, "Sub": 1, "Mul": 2, "Div": 3, "Max": 4, "Min": 5, "Pow": 6}
UNARY = {
    "Abs": 0, "Neg": 1, "Floor": 2, "Ceil": 3, "Square": 4, "Sqrt": 5, "Exp": 7, "Log": 8, "Sin": 9, "Cos": 10,
    "Tan": 11, "Reciprocal": 15, "Round": 18,
}  # fmt: skip
"""Kinds to the numbers by which ncnn knows them."""


@writes(*BINARY)
def binary(feature: OperatorFeature) -> Layer | Fragment:
    """Arithmetic of two activations (with broadcasting), or of an activation and a constant or scalar."""
    alone(feature)
    if len(feature.inputs) + len(feature.weights) > 2:
        raise ProfilingError(f"operator {feature.id}: ncnn computes {feature.kind} of two operands, not of more")
    operation: Params = ((0, BINARY[feature.kind]),)
    if len(feature.inputs) == 1 and (not feature.weights or math.prod(feature.weights[0]) == 1):
        return Layer("BinaryOp", (*operation, (1, 1), (2, 1.0)), in_place=True)
    rank = max(len(shape) for shape in feature.inputs)
    steps: list[Step] = []
    reads: list[tuple[str, Shape]] = [(f"i{i}", ncnn_shape(shape)) for i, shape in enumerate(feature.inputs)]
    for constant in feature.weights:
        held = constant[1:] if len(constant) == rank else constant
        steps.append(memory(held, "t0"))
        reads.append(("t0", held))
    for i, (blob, shape) in enumerate(reads):
        if len(shape) < rank - 1:  # ncnn aligns the outermost axes, ONNX the innermost ones
            aligned = (1,) * (rank - 1 - len(shape)) + shape
            steps.append(Step(reshape_to(aligned), (blob,), ("t1",), (shape,)))
            reads[i] = ("t1", aligned)
    blobs, shapes = zip(*reads, strict=True)
    return (*steps, Step(Layer("BinaryOp", operation), blobs, ("o0",), shapes))


@writes(*UNARY)
def unary(feature: OperatorFeature) -> Layer:
    """Functions of one activation, element by element."""
    alone(feature)
    return Layer("UnaryOp", ((0, UNARY[feature.kind]),), in_place=True)
