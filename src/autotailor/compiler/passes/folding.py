"""Constant folding: arithmetic on shapes and weights is computed once, at compile time."""

from collections.abc import Callable

import numpy as np
import onnx_ir as ir
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx_ir.passes import common
from onnxscript.optimizer import fold_constants_ir

from autotailor.compiler.library import attempt
from autotailor.compiler.passes.budget import Budget

ROUNDS = 8
LARGEST = 1 << 28  # elements of a folded tensor
RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")


def fold(model: ir.Model) -> None:
    """Folds constants in place: no Constant, Identity, Dropout or dead code is left, and shapes are inferred.

    Raises:
        GraphError: a constant cannot be computed, or is too large.
    """
    attempt("its constants cannot be folded", str(model.graph.name), lambda: _fold(model))


def _fold(model: ir.Model) -> None:
    budget = Budget(model)

    def foldable(node: ir.Node) -> bool:
        return node.op_type not in RANDOM and budget.allows(node)

    for _ in range(ROUNDS):
        folded = fold_constants_ir(
            model, onnx_shape_inference=True, input_size_limit=LARGEST, output_size_limit=LARGEST, should_fold=foldable
        )
        several = sum([_fold_several(node, model.opset_imports, foldable) for node in list(model.graph)])
        tidy(model)
        if not folded.modified and not several:
            break


def tidy(model: ir.Model) -> None:
    """Removes dead nodes, unused weights, and Identity; constants become initializers."""
    common.RemoveUnusedNodesPass()(model)
    common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    common.IdentityEliminationPass()(model)
    common.RemoveUnusedNodesPass()(model)


def _fold_several(node: ir.Node, opsets: dict[str, int], foldable: Callable[[ir.Node], bool]) -> bool:
    """Folds an operator with several outputs (a Split of fused weights), which onnxscript does not fold.

    Returns:
        Whether the node was folded.
    """
    if node.domain or len(node.outputs) < 2 or node.graph is None:
        return False
    inputs = [value for value in node.inputs if value is not None]
    if not inputs or any(value.const_value is None for value in inputs) or not foldable(node):
        return False
    proto = ir.to_proto(node)
    graph = helper.make_graph(
        [proto],
        "fold",
        [helper.make_value_info(str(v.name), helper.make_tensor_type_proto(int(v.dtype or 1), None)) for v in inputs],
        [helper.make_value_info(name, helper.make_tensor_type_proto(0, None)) for name in proto.output if name],
    )
    single = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opsets[""])])
    feeds = {str(v.name): np.asarray(v.const_value.numpy()) for v in inputs if v.const_value is not None}
    results = ReferenceEvaluator(single).run(None, feeds)
    for value, result in zip([v for v in node.outputs if v.name], results, strict=True):
        constant = ir.Value(name=f"{value.name}.folded", const_value=ir.tensor(np.asarray(result)))
        constant.shape, constant.type = ir.Shape(np.shape(result)), value.type
        node.graph.register_initializer(constant)
        value.replace_all_uses_with(constant)
    return True
