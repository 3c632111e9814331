"""Refuses detectors that suppress overlapping boxes in their graph, and names the raw heads at which to cut it."""

from __future__ import annotations

import onnx_ir as ir

from autotailor.ir.errors import GraphError

SUPPRESSIONS = ("NonMaxSuppression", "NMS")  # operators of these names, or with them in their names (TensorRT's)
HEADS = frozenset({"Conv", "Gemm", "MatMul"})
LISTED = 12


def check_suppression(model: ir.Model) -> None:
    """Raises GraphError where the number of boxes that a graph returns depends on the picture."""
    for node in model.graph.all_nodes():
        if any(name in node.op_type for name in SUPPRESSIONS):
            names = _heads(node)
            named = ", ".join(names[:LISTED]) + (" ..." if len(names) > LISTED else "")
            such = f", such as [{named}]," if names else ""
            raise GraphError(
                f"graph {model.graph.name}: it suppresses overlapping boxes itself ({node.op_type} {node.name}), so "
                f"that how many it returns depends on the picture; keep its raw heads: set model.output (inspect: "
                f"--output) to tensors before it{such} or give a PyTorch module that returns what its heads do; "
                f"data.decode then makes boxes of them (docs/guides/detection.md)"
            )


def _heads(node: ir.Node) -> list[str]:
    """The outputs of the last convolutions and matrices before a node, in the order of the graph."""
    heads, seen, waiting = dict[str, int](), set[ir.Node](), [node]
    while waiting:
        for value in waiting.pop().inputs:
            before = value.producer() if value is not None else None
            if before is None or before in seen:
                continue
            seen.add(before)
            if before.op_type in HEADS:
                heads[str(before.outputs[0].name)] = len(heads)
            elif before.op_type != "Shape":  # of maps whose sizes alone are read
                waiting.append(before)
    return list(reversed(heads))
