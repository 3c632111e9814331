"""Reductions over axes of an activation."""

from autotailor.ir.feature import OperatorFeature
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.runtimes.ncnn.layers.layer import Fragment, Layer, alone, chain, ncnn_shape, writes

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
def reduce(feature: OperatorFeature) -> Layer | Fragment:
    """Sums, means, norms and extremes over axes; if no axes are given, over all axes except the batch.

    A sum over one axis that drops the axis becomes two layers (see ``preparation``).
    """
    alone(feature)
    rank = len(feature.inputs[0])
    axes = tuple(int(axis) % rank for axis in feature.attribute("axes") or range(1, rank))
    if 0 in axes:
        raise ProfilingError(
            f"operator {feature.id}: ncnn cannot reduce the batch of an activation of shape {list(feature.inputs[0])}"
        )
    keeps, numbers = bool(feature.attribute("keepdims", 1)), tuple(axis - 1 for axis in axes)
    if feature.kind == "ReduceSum" and len(axes) == 1 and not keeps:
        shape = ncnn_shape(feature.inputs[0])
        summed = (*shape[: numbers[0]], 1, *shape[numbers[0] + 1 :])
        squeeze = Layer("Squeeze", ((3, numbers),))
        return chain(feature, (_reduction(0, numbers, True), summed), (squeeze, ncnn_shape(feature.outputs[0])))
    return _reduction(OPERATIONS[feature.kind], numbers, keeps)


def _reduction(operation: int, axes: tuple[int, ...], keeps: bool) -> Layer:
    return Layer("Reduction", ((0, operation), (1, 0), (3, axes), (4, int(keeps)), (5, 1)))
