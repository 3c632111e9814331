"""Half and double precision become single precision, because the IR computes in float32."""

import numpy as np
import onnx_ir as ir

OTHER = frozenset({ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE})


def to_float32(model: ir.Model) -> None:
    """Ensures that no input, weight, constant or cast is of half or double precision; changes the model in place."""
    values = [v for v in model.graph.inputs if v.dtype in OTHER]
    for graph in model.graphs():
        for weight in graph.initializers.values():
            if weight.const_value is not None and weight.const_value.dtype in OTHER:
                weight.const_value = _single(weight.const_value)
                values.append(weight)
    for node in model.graph.all_nodes():
        values += [v for v in node.outputs if v.dtype in OTHER]
        for name, attribute in list(node.attributes.items()):
            if attribute.type == ir.AttributeType.TENSOR and attribute.as_tensor().dtype in OTHER:
                node.attributes[name] = ir.AttrTensor(name, _single(attribute.as_tensor()))
            elif name in ("to", "dtype") and attribute.type == ir.AttributeType.INT and attribute.as_int() in OTHER:
                node.attributes[name] = ir.AttrInt64(name, int(ir.DataType.FLOAT))
    for value in values:
        value.type = ir.TensorType(ir.DataType.FLOAT)


def _single(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    return ir.tensor(tensor.numpy().astype(np.float32), name=tensor.name)
