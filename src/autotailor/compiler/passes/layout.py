"""Images that a file takes channels last or in bytes, as those of Keras and tf2onnx: the SuperNet takes neither.

- ``Transpose(image, 0 3 1 2)`` -> the image, channels first; other readers get a Transpose of it.
- ``Cast(image, float)`` -> the image.
"""

import onnx_ir as ir

from autotailor.compiler.passes.series import SERIES
from autotailor.ir.given import TO_FIRST, TO_LAST, Given

RGB = 3
LAST, BYTES = "autotailor.channels_last", "autotailor.bytes"
"""The model's properties that keep what the file took."""


def take_floats_first(model: ir.Model, image: ir.Value) -> None:
    """Lets the model take float32, channels first, where it takes RGB bytes or channels last; in place."""
    shape = None if image.shape is None else list(image.shape)
    if shape is None or len(shape) != 4 or RGB not in (shape[1], shape[3]):
        return
    is_last = image.dtype in (ir.DataType.FLOAT, ir.DataType.UINT8) and shape[1] not in (1, RGB, 4)
    if is_last and _read_by(image, "Transpose"):
        _turn(model, image)
    if image.dtype == ir.DataType.UINT8 and _read_by(image, "Cast"):
        _take_floats(model, image)
    if is_last and image.dtype == ir.DataType.FLOAT and LAST not in model.metadata_props:
        _turn(model, image)


def _take_floats(model: ir.Model, image: ir.Value) -> None:
    """Lets the model take the floats into which it casts its bytes."""
    for node, _ in list(image.uses()):
        if node.attributes["to"].as_int() == ir.DataType.FLOAT:
            _replace(node, image)
    image.type = ir.TensorType(ir.DataType.FLOAT)
    model.metadata_props[BYTES] = "1"


def _turn(model: ir.Model, image: ir.Value) -> None:
    """Lets the model take an image with its channels first."""
    assert image.shape is not None
    image.shape = ir.Shape([image.shape[axis] for axis in TO_FIRST])
    last = None
    for node, slot in list(image.uses()):
        if node.op_type == "Transpose" and tuple(node.attributes["perm"].as_ints()) == TO_FIRST:
            _replace(node, image)
        else:
            last = last or _turned_back(model, image)
            node.replace_input_with(slot, last)
    model.metadata_props[LAST] = "1"


def given(model: ir.Model) -> Given:
    """What the file took, before ``take_floats_first`` and ``lift_series``."""
    return Given(*(name in model.metadata_props for name in (LAST, BYTES, SERIES)))


def _read_by(image: ir.Value, kind: str) -> bool:
    return all(node.op_type == kind and not node.domain for node, _ in image.uses())


def _replace(node: ir.Node, image: ir.Value) -> None:
    """Lets the image stand for a node's result."""
    ir.convenience.replace_all_uses_with(node.outputs[0], image, replace_graph_outputs=True)
    assert node.graph is not None
    node.graph.remove(node, safe=True)


def _turned_back(model: ir.Model, image: ir.Value) -> ir.Value:
    """The image with its channels last, for readers that want it so."""
    node = ir.node("Transpose", [image], attributes={"perm": list(TO_LAST)}, name=f"{image.name}:channels_last")
    node.outputs[0].name = node.name
    model.graph.insert_before(model.graph[0], node)
    return node.outputs[0]
