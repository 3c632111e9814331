"""Reductions over axes of an activation."""

from autotailor.ir.feature import OperatorFeature
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.runtimes.ncnn.layers.layer import Layer, alone, writes

OPERATIONS = {
    "ReduceSum": 0,
    "ReduceSumSquare": 2,
    "ReduceMean": 3,
    "ReduceMax": 4,
    "ReduceMin": 5,
    "ReduceProd": 6,
    "ReduceL1": 7,
    "ReduceL2": 8,
    "ReduceLogSum": 9,
    "ReduceLogSumExp": 10,
}
"""Kinds to the numbers by which ncnn knows them."""


@writes(*OPERATIONS)
def reduce(feature: OperatorFeature) -> Layer:
    """Sums, means, norms and extremes over axes; if no axes are given, over all axes except the batch."""
    alone(feature)
    rank = len(feature.inputs[0])
    axes = tuple(int(axis) % rank for axis in feature.attribute("axes") or range(1, rank))
    if 0 in axes:
        raise ProfilingError(
            f"operator {feature.id}: ncnn cannot reduce the batch of an activation of shape {list(feature.inputs[0])}"
        )
    numbers, keeps = tuple(axis - 1 for axis in axes), int(feature.attribute("keepdims", 1))
    return Layer("Reduction", ((0, OPERATIONS[feature.kind]), (1, 0), (3, numbers), (4, keeps), (5, 1)))
