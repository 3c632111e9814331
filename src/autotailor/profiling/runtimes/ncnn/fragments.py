"""The ncnn layers of an operator: those that ``layers`` writes for its kind, or else those that pnnx converts."""

import math
from collections.abc import Mapping, Sequence

from autotailor.ir.feature import OperatorFeature, Shape
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.runtimes.ncnn import layers
from autotailor.profiling.runtimes.ncnn.layers import Fragment, ncnn_shape
from autotailor.profiling.runtimes.ncnn.param import operator_lines, param_text
from autotailor.profiling.runtimes.ncnn.trial import TrialNet, run_trials


def fragment(feature: OperatorFeature) -> Fragment:
    """The layers of a fused operator.

    Raises:
        ProfilingError: no layers are written for the operator, and pnnx cannot convert it.
    """
    try:
        return layers.fragment(feature)
    except ProfilingError as error:
        outcome = _convert([feature])[feature.id]
        if isinstance(outcome, str):
            raise ProfilingError(_reason(error, outcome)) from error
        return outcome


def refused_operators(features: Sequence[OperatorFeature]) -> dict[str, str]:
    """Ids of operators that ncnn cannot run, with the reasons.

    Operators without written layers are converted, many at once. Of each sort of written layers one operator is really
    loaded and run.
    """
    reasons: dict[str, ProfilingError] = {}
    made: dict[str, Fragment] = {}
    for feature in features:
        try:
            made[feature.id] = layers.fragment(feature)
        except ProfilingError as error:
            reasons[feature.id] = error
    refused = _unrunnable([feature for feature in features if feature.id in made], made)
    outcomes = _convert([feature for feature in features if feature.id in reasons]) if reasons else {}
    return refused | {
        key: _reason(reasons[key], outcome) for key, outcome in outcomes.items() if isinstance(outcome, str)
    }


def layer_types(feature: OperatorFeature) -> frozenset[str]:
    """Types of an operator's layers."""
    return frozenset(step.layer.type for step in fragment(feature))


def _convert(features: Sequence[OperatorFeature]) -> dict[str, Fragment | str]:
    # Imported here: most networks need no conversion, and onnxruntime, which checks it, takes a second to import.
    from autotailor.profiling.runtimes.ncnn.conversion import convert_operators

    return convert_operators(features)


def _reason(error: ProfilingError, outcome: str) -> str:
    """Why there are no layers: the reason of the writer, and that of pnnx if it differs."""
    return str(error) if outcome in str(error) else f"{error}; pnnx cannot convert it, either: {outcome}"


def _unrunnable(features: Sequence[OperatorFeature], made: dict[str, Fragment]) -> dict[str, str]:
    """Ids of operators whose layers ncnn cannot load or run, with the reasons.

    The smallest operator of each sort is tried, with zero weights.
    """
    sorts: dict[object, list[OperatorFeature]] = {}
    for feature in features:
        sorts.setdefault(_sort(feature, made[feature.id]), []).append(feature)
    smallest = [min(each, key=_size) for each in sorts.values()]
    trials = run_trials([_alone(feature) for feature in smallest])
    refused: dict[str, str] = {}
    for each, tried, trial in zip(sorts.values(), smallest, trials, strict=True):
        if failure := trial.failure or _other_shape(tried, trial.shapes):
            what = f"operator {tried.id}: {failure}: correct the layers that profiling/runtimes/ncnn/layers writes"
            refused |= {feature.id: what for feature in each}
    return refused


def _other_shape(feature: OperatorFeature, shapes: Mapping[str, Shape]) -> str:
    """How ncnn's outputs differ in size from the operator's; empty where all sizes are equal.

    Sizes are compared instead of shapes, because ncnn turns a map of one pixel into a vector.
    """
    for i, shape in enumerate(feature.outputs):
        if math.prod(shapes[f"out{i}"]) != math.prod(shape):
            return f"ncnn gives its output the shape {list(shapes[f'out{i}'])} instead of {list(shape)}"
    return ""


def _sort(feature: OperatorFeature, steps: Fragment) -> object:
    """Key of operators that ncnn runs alike: same layers, parameters' ids and numbers of axes."""
    parts = tuple(
        (step.layer.type, tuple(key for key, _ in step.layer.params), tuple(map(len, step.shapes))) for step in steps
    )
    return feature.kind, parts


def _size(feature: OperatorFeature) -> int:
    return sum(sum(shape) for shape in (*feature.inputs, *feature.weights))


def _alone(feature: OperatorFeature) -> TrialNet:
    """A network of one operator."""
    shapes = tuple(ncnn_shape(shape) for shape in feature.inputs)
    reads = [f"in{i}" for i in range(len(shapes))]
    writes = [f"out{i}" for i in range(len(feature.outputs))]
    lines = [f"Input {name} 0 1 {name}" for name in reads] + operator_lines(fragment(feature), "op", reads, writes)
    return TrialNet(param_text(lines), None, shapes)
