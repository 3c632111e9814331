"""Normalised ONNX: opset 20 or newer, functions inlined, constants folded, batch 1, static shapes, BatchNorm kept."""

import math

import onnx.shape_inference
import onnx_ir as ir
from onnx_ir.passes import common

from autotailor.compiler.library import attempt, complaint
from autotailor.compiler.passes.folding import RANDOM, fold
from autotailor.compiler.passes.inlining import inline
from autotailor.compiler.passes.lowering import lower
from autotailor.compiler.passes.opset import check_opset, upgrade
from autotailor.compiler.passes.precision import to_float32
from autotailor.compiler.passes.series import lift_series
from autotailor.compiler.passes.signature import batch_remedy, fix_signature
from autotailor.compiler.passes.suppression import check_suppression
from autotailor.compiler.rewrites.canonical import canonicalise
from autotailor.ir.errors import GraphError

QUANTISED = ("QuantizeLinear", "DynamicQuantizeLinear", "QLinear", "ConvInteger", "MatMulInteger")  # or begin so
LARGEST = 1 << 28  # elements of an activation for one image: 1 GiB


def normalise(model: ir.Model, resolution: int | None = None) -> ir.Model:
    """Normalises a model in place into the form that ``parser.parse`` requires, and returns it.

    Args:
        model: a model of opset 7 to 23 that ONNX's checker accepts.
        resolution: side of the images (pixels), for files with dynamic image sizes.

    Raises:
        GraphError: the model does not have one input and at least one output, holds an operator that cannot be
            compiled, or has shapes that cannot be inferred.
    """
    name = str(model.graph.name)
    check_opset(model)
    check_suppression(model)
    inline(model)
    attempt("its nodes cannot be named", name, lambda: common.NameFixPass()(model))
    attempt("it cannot be converted to single precision", name, lambda: to_float32(model))
    fix_signature(model, resolution)
    upgrade(model)
    fold(model)
    lift_series(model)
    _check_operators(model)
    _infer(model)
    canonicalise(model)
    lower(model)
    attempt("its names are ambiguous", name, lambda: common.NameFixPass()(model))
    return model


def _check_operators(model: ir.Model) -> None:
    """Refuses quantisation, control flow that did not fold away, random numbers, and operators of other domains."""
    for node in model.graph:
        if node.op_type.startswith(QUANTISED):
            raise GraphError(
                f"node {node.name}: {node.op_type} belongs to a quantised network; give the float network, because "
                f"exports are quantised afterwards, not before"
            )
        if node.domain:
            raise GraphError(
                f"node {node.name}: operator {node.domain}.{node.op_type} is of a custom domain; export without it"
            )
        if node.op_type in RANDOM:
            raise GraphError(
                f"node {node.name}: {node.op_type} draws random numbers; export the network in eval mode, and draw "
                f"none in forward where self.training is false"
            )
        if any(a.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) for a in node.attributes.values()):
            raise GraphError(
                f"node {node.name}: {node.op_type} branches on values of the image; "
                f"export the network traced, without control flow"
            )


def _infer(model: ir.Model) -> None:
    """Ensures a static shape with no empty axis for every activation."""
    values = [value for node in model.graph for value in node.outputs if value.name]
    if not all(_is_static(value) for value in values):
        attempt("its shapes cannot be inferred", str(model.graph.name), lambda: common.ShapeInferencePass()(model))
    while _same_shapes(model):
        attempt("its shapes cannot be inferred", str(model.graph.name), lambda: common.ShapeInferencePass()(model))
    for value in values:
        if not _is_static(value):
            why = complaint(
                model, lambda proto: onnx.shape_inference.infer_shapes(proto, strict_mode=True, data_prop=True)
            )
            shape = "unknown" if value.shape is None else [str(size) for size in value.shape]
            raise GraphError(
                f"graph {model.graph.name}: tensor {value.name} has shape {shape}; its shapes cannot be inferred "
                f"from an image of shape {model.graph.inputs[0].shape}: {why}{batch_remedy(model)}"
            )
        if value.shape is not None and any(int(size) < 1 for size in value.shape):  # type: ignore[arg-type]
            raise GraphError(f"graph {model.graph.name}: tensor {value.name} of shape {value.shape} is empty")
        if value.shape is not None and math.prod(map(int, value.shape)) > LARGEST:  # type: ignore[arg-type]
            raise GraphError(
                f"graph {model.graph.name}: tensor {value.name} of shape {value.shape} has more than {LARGEST} numbers "
                f"for one image; export the network for smaller images"
            )


def _same_shapes(model: ir.Model) -> bool:
    """Gives GroupNormalization its input's shape, which ONNX's inference leaves out; returns whether any was set."""
    news = False
    for node in model.graph:
        source, result = (*node.inputs, None)[0], node.outputs[0]
        unsaid = node.op_type == "GroupNormalization" and not _is_static(result)
        if unsaid and source is not None and _is_static(source):
            result.shape, result.type = source.shape, source.type
            news = True
    return news


def _is_static(value: ir.Value) -> bool:
    return value.shape is not None and all(isinstance(size, int) for size in value.shape)
