"""Finds the convolutions into which an exporter folded BatchNorm, from the exporter's records in the file.

The weights themselves do not show folding: VGG, SqueezeNet and AlexNet never had BatchNorm, and their weights look like
folded ones. Therefore only the exporters' records count. Without a record, BatchNorm is put back only where the user
asks for it.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

import onnx_ir as ir

from autotailor.ir.errors import GraphError
from autotailor.ir.execution.batch_norm import FOLDED_INTO

BatchNorm = Literal["auto", "reinsert", "keep"]

_RULES = "pkg.onnxscript.rewriter.rule_name"  # torch's dynamo exporter lists the rewrites of a node
_TORCH = re.compile(r"(onnx::Conv_)?\d+")  # torch's classic exporter numbers tensors that are not parameters
_TF2ONNX = (re.compile(r".*_weights_fused_bn(__\d+)?"), re.compile(r".*_bias_fused_bn(__\d+)?"))


def check_mode(mode: str) -> None:
    """Raises GraphError unless ``mode`` is one of the values of ``BatchNorm``."""
    if mode not in get_args(BatchNorm):
        raise GraphError(f"batch_norm {mode!r}: expected one of {', '.join(get_args(BatchNorm))}")


def recorded(model: ir.Model) -> frozenset[str]:
    """Names of the output tensors of all operators with folded BatchNorm, according to the exporter's records.

    - torch, dynamo: the node's metadata lists the rewrite ``FuseBatchNormInto...``.
    - torch, classic: the names of weight *and* bias of a Conv are numbers (``onnx::Conv_497``) instead of names of a
      module's parameters. Where the exporter only standardises or reparametrises weights, the bias keeps its name.
    - tf2onnx: weight and bias are called ``..._weights_fused_bn`` and ``..._bias_fused_bn``.
    """
    torch = model.producer_name == "pytorch"
    return frozenset(
        str(node.outputs[0].name)
        for node in model.graph
        if node.op_type in FOLDED_INTO and not node.domain and (_rewritten(node) or _named(node, torch))
    )


def _rewritten(node: ir.Node) -> bool:
    return "FuseBatchNormInto" in node.metadata_props.get(_RULES, "")


def _named(node: ir.Node, torch: bool) -> bool:
    if node.op_type != "Conv" or len(node.inputs) < 3 or node.inputs[1] is None or node.inputs[2] is None:
        return False
    weight, bias = str(node.inputs[1].name), str(node.inputs[2].name)
    if torch and _TORCH.fullmatch(weight) and _TORCH.fullmatch(bias):
        return True
    return bool(_TF2ONNX[0].fullmatch(weight) and _TF2ONNX[1].fullmatch(bias))
