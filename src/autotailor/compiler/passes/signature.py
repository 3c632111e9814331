"""One image in, one tensor out: the batch is 1, dynamic image sizes are filled in."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir
from onnx_ir.passes import common

from autotailor.ir.errors import GraphError


def fix_signature(model: ir.Model, resolution: int | None) -> None:
    """Ensures one static float input of batch 1 and one output; forgets every other shape the file states.

    Args:
        model: changed in place.
        resolution: for dynamic spatial axes (pixels).

    Raises:
        GraphError: several inputs or outputs, other types than float tensors, or axes that stay dynamic.
    """
    graph, name = model.graph, str(model.graph.name)
    common.RemoveInitializersFromInputsPass()(model)
    read = [value for value in graph.inputs if value.uses() or value.is_graph_output()]
    if len(read) != 1 or len(graph.outputs) != 1:
        raise GraphError(
            f"graph {name}: an image classifier has one input and one output, this one has {len(read)} "
            f"({_names(read)}) and {len(graph.outputs)} ({_names(graph.outputs)}); "
            f"cut the part you need out with onnx.utils.extract_model"
        )
    graph.inputs.clear()
    graph.inputs.extend(read)
    for node in graph.all_nodes():
        for value in node.outputs:
            value.shape = None
    image = read[0]
    if not isinstance(image.type, ir.TensorType) or image.dtype != ir.DataType.FLOAT or image.shape is None:
        raise GraphError(
            f"graph {name}: input {image.name} is {image.type} of shape {image.shape}; "
            f"expected a float tensor [batch, channels, height, width]"
        )
    image.shape = ir.Shape(_static(name, image, resolution))


def _static(graph: str, image: ir.Value, resolution: int | None) -> list[int]:
    assert image.shape is not None
    dims = list(image.shape)
    if len(dims) < 2:
        raise GraphError(f"graph {graph}: its input has no batch and channel axes")
    dims[0] = 1
    dynamic = [axis for axis, size in enumerate(dims) if not isinstance(size, int)]
    if dynamic and (resolution is None or len(dims) != 4 or len(dynamic) != 2):
        raise GraphError(
            f"graph {graph}: input {image.name} has dynamic axes besides the batch {[str(d) for d in dims]}; "
            f"say the image size (resolution), or export it with a fixed one"
        )
    sizes = [resolution if axis in dynamic else size for axis, size in enumerate(dims)]
    fixed = [int(size) for size in sizes if isinstance(size, int)]
    if min(fixed) < 1:
        raise GraphError(f"graph {graph}: input {image.name} of shape {fixed} is empty")
    if resolution is not None and len(fixed) == 4 and resolution not in fixed[1:]:
        raise GraphError(
            f"graph {graph}: the file is fixed to images of shape {fixed[1:]}, not to {resolution} pixels; "
            f"leave the resolution to the file, or export it for {resolution}"
        )
    return fixed


def _names(values: Iterable[ir.Value]) -> str:
    return ", ".join(str(value.name) for value in values)
