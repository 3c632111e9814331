"""Which convolutions have BatchNorm folded into them: what exporters leave behind in the file.

No weight says whether it has been folded: VGG, SqueezeNet and AlexNet look the same and never had a normalisation.
Therefore only the records of the exporters that fold count; where there is none, nothing is put back unless
the user asks.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

import onnx_ir as ir

from autotailor.ir.errors import GraphError
from autotailor.ir.execution.batch_norm import FOLDED_INTO

BatchNorm = Literal["auto", "reinsert", "keep"]

_RULES = "pkg.onnxscript.rewriter.rule_name"  # torch's dynamo exporter lists the rewrites of a node
_TORCH = re.compile(r"(onnx::Conv_)?\d+")  # its classic exporter numbers tensors that are no parameters of a module
_TF2ONNX = (re.compile(r".*_weights_fused_bn(__\d+)?"), re.compile(r".*_bias_fused_bn(__\d+)?"))


def check_mode(mode: str) -> None:
    """Refuses what is no way of treating BatchNorm."""
    if mode not in get_args(BatchNorm):
        raise GraphError(f"batch_norm {mode!r}: expected one of {', '.join(get_args(BatchNorm))}")


def recorded(model: ir.Model) -> frozenset[str]:
    """Names of the tensors that operators with folded BatchNorm write, as the exporter recorded them.

    - torch, dynamo: the node's metadata lists the rewrite ``FuseBatchNormInto...``.
    - torch, classic: weight *and* bias of the Conv are no parameters of a module (``onnx::Conv_497``); weights that
      are standardised or reparametrised while exporting keep their bias's name.
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
