"""Static parts: operators without a rule keep their weights and run through onnx2torch (paper, section 4.1.2)."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from autotailor.ir.errors import GraphError
from autotailor.ir.execution.onnx_writer import IR_VERSION, OPSET, write_node
from autotailor.ir.graph import Graph, Node


def bypass(graph: Graph, node: Node) -> nn.Module:
    """A module of one operator with fixed weights; the inputs of the module are the node's activations, in order.

    Raises:
        GraphError: onnx2torch has no converter for the operator.
    """
    import onnx2torch

    proto, constants = write_node(node)
    activations = list(dict.fromkeys(graph.activations(node)))
    weights = [numpy_helper.from_array(graph.weights[n], n) for n in dict.fromkeys(node.inputs) if n in graph.weights]
    model = helper.make_model(
        helper.make_graph(
            [proto],
            node.name,
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, graph.shapes[n]) for n in activations],
            [helper.make_tensor_value_info(node.outputs[0], TensorProto.FLOAT, graph.shapes[node.outputs[0]])],
            weights + constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    try:
        module: nn.Module = onnx2torch.convert(onnx.shape_inference.infer_shapes(model)).eval()
    except NotImplementedError as error:
        raise GraphError(
            f"node {node.name}: neither autotailor nor onnx2torch can run {node.kind} ({error}); "
            f"replace the operator in the model, or add a rule under autotailor/ir/operators"
        ) from error
    return module.requires_grad_(False)
