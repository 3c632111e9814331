"""Rewrites operators without a rule to opset 17, in which ``bypass`` executes and exports them."""

import onnx
import onnx.version_converter
import onnx_ir as ir
from onnx import helper, numpy_helper

from autotailor.ir.execution.onnx_writer import IR_VERSION, OPSET
from autotailor.ir.operators.rule import rules


def lower(model: ir.Model) -> None:
    """Rewrites, in place, every operator that has no rule and whose definition changed after opset 17.

    ONNX cannot convert whole graphs to an older opset, but it can convert most single operators: inputs that used to
    be attributes, such as the axes of a reduction, become attributes again. Other operators stay as they are.
    """
    opset = model.graph.opset_imports[""]
    for node in list(model.graph):
        if rules.find(node.op_type) is None and _changed(node.op_type, opset):
            _lower(node, opset)


def _changed(kind: str, opset: int) -> bool:
    return opset > OPSET and int(onnx.defs.get_schema(kind, opset).since_version) > OPSET


def _lower(node: ir.Node, opset: int) -> None:
    values = {str(value.name): value for value in node.inputs if value is not None}
    single = helper.make_model(
        helper.make_graph(
            [ir.to_proto(node)],
            "lower",
            [ir.to_proto(value) for value in values.values() if value.const_value is None],
            [ir.to_proto(value) for value in node.outputs],
            [numpy_helper.from_array(v.const_value.numpy(), n) for n, v in values.items() if v.const_value is not None],
        ),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=IR_VERSION,
    )
    try:
        lowered = onnx.version_converter.convert_version(single, OPSET).graph.node
    except RuntimeError:  # ONNX has no adapter
        return
    if len(lowered) != 1 or not set(lowered[0].input) <= {*values, ""}:
        return
    node.attributes.clear()
    for attribute in lowered[0].attribute:
        node.attributes[attribute.name] = ir.from_proto(attribute)
    node.resize_inputs(len(lowered[0].input))
    for slot, name in enumerate(lowered[0].input):
        node.replace_input_with(slot, values.get(name))
