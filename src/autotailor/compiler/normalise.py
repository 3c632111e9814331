"""Normalised ONNX: constants folded, shapes inferred, batch 1, BatchNorm kept."""

from __future__ import annotations

import onnx
import onnxslim
from onnx import shape_inference
from onnxslim.core.pattern.registry import DEFAULT_FUSION_PATTERNS

from autotailor.ir.errors import GraphError

_FUSIONS = tuple(name for name in DEFAULT_FUSION_PATTERNS if name.startswith("Fusion"))


def normalise(model: onnx.ModelProto) -> onnx.ModelProto:
    """Requires a checked model; ensures static shapes, batch 1, no Constant or Identity on weights, no fusions.

    Raises:
        GraphError: not one image in and one row of logits out, or shapes that cannot be inferred.
    """
    fixed = _fix_input(model)
    try:
        slim = onnxslim.slim(fixed, skip_fusion_patterns=list(_FUSIONS))
        inferred: onnx.ModelProto = shape_inference.infer_shapes(slim, strict_mode=True, data_prop=True)
    except Exception as error:
        raise GraphError(f"graph {model.graph.name}: its shapes cannot be inferred: {error}") from error
    return inferred


def _fix_input(model: onnx.ModelProto) -> onnx.ModelProto:
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    weights = {initializer.name for initializer in fixed.graph.initializer}
    inputs = [value for value in fixed.graph.input if value.name not in weights]
    if len(inputs) != 1 or len(fixed.graph.output) != 1:
        raise GraphError(
            f"graph {fixed.graph.name}: an image classifier has one input and one output, "
            f"this one has {len(inputs)} and {len(fixed.graph.output)}"
        )
    dims = inputs[0].type.tensor_type.shape.dim
    if len(dims) < 2:
        raise GraphError(f"graph {fixed.graph.name}: its input has no batch and channel axes")
    dims[0].Clear()
    dims[0].dim_value = 1
    if any(dim.dim_value < 1 for dim in dims):
        raise GraphError(
            f"graph {fixed.graph.name}: input {inputs[0].name} has dynamic axes besides the batch; "
            f"export it with a fixed image size"
        )
    for value in [*fixed.graph.output, *fixed.graph.value_info]:
        if value.type.tensor_type.HasField("shape"):
            value.type.tensor_type.ClearField("shape")
    del fixed.graph.value_info[:]
    kept = [value for value in fixed.graph.input if value.name == inputs[0].name]
    del fixed.graph.input[:]
    fixed.graph.input.extend(kept)
    return fixed
