"""Fixes a model's signature: one image as input, batch 1, and a static image size."""

from collections.abc import Iterable

import onnx_ir as ir
from onnx_ir.passes import common

from autotailor.compiler.passes.layout import take_floats_first
from autotailor.ir.errors import GraphError

COLOURS = (1, 3, 4)  # channels that images come with
LARGEST_SIDE = 1 << 13  # pixels
BATCH = "autotailor.batch"  # the model's property that keeps the batch to which the file was fixed


def fix_signature(model: ir.Model, resolution: int | None) -> None:
    """Ensures one static float input of batch 1; removes every other shape that the file states.

    Args:
        model: changed in place.
        resolution: side of the images (pixels), for dynamic spatial axes.

    Raises:
        GraphError: several inputs or no output, other types than float tensors, or axes that stay dynamic.
    """
    graph, name = model.graph, str(model.graph.name)
    common.RemoveInitializersFromInputsPass()(model)
    read = [value for value in graph.inputs if value.uses() or value.is_graph_output()]
    if len(read) != 1 or not graph.outputs:
        raise GraphError(
            f"graph {name}: a network for images has one input and at least one output, this one has {len(read)} "
            f"({_names(read)}) and {len(graph.outputs)} ({_names(graph.outputs)}); set model.output (inspect: "
            f"--output) to what one input leads to, cut the part you need out with onnx.utils.extract_model, or let "
            f"the network take one array, such as two pictures as its channels, and take that apart"
        )
    graph.inputs.clear()
    graph.inputs.extend(read)
    for node in graph.all_nodes():
        for value in node.outputs:
            value.shape = None
    image = read[0]
    take_floats_first(model, image)
    _check_image(name, image)
    assert image.shape is not None
    batch = image.shape[0]
    image.shape = ir.Shape(_static(name, image, resolution))
    if isinstance(batch, int) and batch > 1:
        model.metadata_props[BATCH] = str(batch)


def batch_remedy(model: ir.Model) -> str:
    """The end of a message about shapes, for a file that was fixed to a batch of several images; else nothing."""
    batch = model.metadata_props.get(BATCH)
    if batch is None:
        return ""
    return f"; the file is fixed to batches of {batch}: export it with a dynamic batch axis, or with one image"


def _check_image(graph: str, image: ir.Value) -> None:
    """Refuses an input that is no batch of images or signals, channels first; the message says how to export one."""
    form = "expected a float tensor [batch, channels, height, width] or [batch, channels, length]"
    if not isinstance(image.type, ir.TensorType) or image.shape is None:
        raise GraphError(f"graph {graph}: input {image.name} is {image.type} of shape {image.shape}; {form}")
    dims = [size if isinstance(size, int) else str(size) for size in image.shape]
    text = f"graph {graph}: input {image.name} is {image.dtype} of shape {dims}"
    if image.dtype != ir.DataType.FLOAT:
        raise GraphError(
            f"{text}; {form}: the data section scales and normalises images, so export the network without these "
            f"steps, or cut them off with onnx.utils.extract_model"
        )
    if len(dims) not in (3, 4):
        raise GraphError(f"{text}, which is no batch of images or signals; {form}")
    if len(dims) == 4 and dims[1] not in COLOURS and dims[3] in COLOURS:
        raise GraphError(
            f"{text}, channels last; {form}: export it channels first (tf2onnx: --inputs-as-nchw {image.name})"
        )


def _static(graph: str, image: ir.Value, resolution: int | None) -> list[int]:
    assert image.shape is not None
    dims = list(image.shape)
    dims[0] = 1
    dynamic = [axis for axis, size in enumerate(dims) if not isinstance(size, int)]
    if dynamic and (resolution is None or 1 in dynamic):
        raise GraphError(
            f"graph {graph}: input {image.name} has dynamic axes besides the batch {[str(d) for d in dims]}; "
            f"give the image size (model.resolution), or export the network with a fixed size"
        )
    sizes = [resolution if axis in dynamic else size for axis, size in enumerate(dims)]
    fixed = [int(size) for size in sizes if isinstance(size, int)]
    if min(fixed) < 1:
        raise GraphError(f"graph {graph}: input {image.name} of shape {fixed} is empty")
    if max(fixed[2:]) > LARGEST_SIDE:
        raise GraphError(
            f"graph {graph}: images of shape {fixed[1:]} are too large; {LARGEST_SIDE} pixels are the limit"
        )
    if resolution is not None and len(fixed) == 4 and fixed[2] != fixed[3]:
        raise GraphError(
            f"graph {graph}: the file takes images of {fixed[2]} x {fixed[3]} pixels, and a resolution is the side of "
            f"square ones, as pictures are prepared for training; export the network for square images, or with "
            f"dynamic sides"
        )
    if resolution is not None and resolution != fixed[-1]:
        raise GraphError(
            f"graph {graph}: the file is fixed to images of shape {fixed[1:]}, not to {resolution} pixels; "
            f"remove the resolution, or export the network for {resolution}"
        )
    return fixed


def _names(values: Iterable[ir.Value]) -> str:
    return ", ".join(str(value.name) for value in values)
