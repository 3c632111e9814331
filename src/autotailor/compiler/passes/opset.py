"""Opsets: the range that the IR reads, and the upgrade to the opset that the IR works on."""

import onnx.version_converter
import onnx_ir as ir
from onnxscript.version_converter import ConvertVersionPass

from autotailor.compiler.library import attempt, complaint
from autotailor.ir.errors import GraphError

OLDEST, WORKING, NEWEST = 7, 20, 23


def check_opset(model: ir.Model) -> int:
    """The opset of ONNX's own operators that a model imports.

    Raises:
        GraphError: the model imports no opset, or one that the IR does not read.
    """
    version = model.graph.opset_imports.get("")
    if version is None or not OLDEST <= version <= NEWEST:
        opset = "no opset" if version is None else f"opset {version}"
        raise GraphError(
            f"graph {model.graph.name}: it uses {opset}; autotailor reads ONNX opsets {OLDEST} to {NEWEST}, export it "
            f"with opset_version={WORKING}"
        )
    return version


def upgrade(model: ir.Model) -> None:
    """Ensures opset 20 or newer. Operators after opset 20 need no change: they only accept more types.

    Raises:
        GraphError: ONNX has no conversion for an operator.
    """
    version = check_opset(model)
    if version >= WORKING:
        return
    convert = ConvertVersionPass(target_version=WORKING, fallback=True)
    attempt(f"it cannot be converted from opset {version} to {WORKING}", str(model.graph.name), lambda: convert(model))
    if model.graph.opset_imports.get("") != WORKING:
        why = complaint(model, lambda proto: onnx.version_converter.convert_version(proto, WORKING))
        raise GraphError(
            f"graph {model.graph.name}: it cannot be converted from opset {version} to {WORKING}: {why}; "
            f"export it with opset_version={WORKING}"
        )
    for node in model.graph.all_nodes():
        if version < 11 and node.op_type == "Resize":
            _resize_as_before_11(node)


def _resize_as_before_11(node: ir.Node) -> None:
    """Sets the attributes of opset 10, where pixels were counted from their corners; ONNX's converter omits them."""
    node.attributes["coordinate_transformation_mode"] = ir.AttrString("coordinate_transformation_mode", "asymmetric")
    node.attributes["nearest_mode"] = ir.AttrString("nearest_mode", "floor")
