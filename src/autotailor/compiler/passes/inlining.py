"""Inlines the functions of a file, after the number of resulting nodes was counted.

The count comes first, because functions that call each other twenty deep, ten times each, would become 10 ** 20 nodes.
"""

from collections.abc import Iterable

import onnx_ir as ir
from onnx_ir.passes import common

from autotailor.compiler.library import attempt
from autotailor.ir.errors import GraphError

MOST_NODES = 1_000_000


def inline(model: ir.Model) -> None:
    """Inlines all functions in place, so that no node calls a function of the file.

    Raises:
        GraphError: a function calls itself, or the functions would become too many nodes.
    """
    name = str(model.graph.name)
    sizes: dict[ir.OperatorIdentifier, int] = {}

    def written_out(nodes: Iterable[ir.Node]) -> int:
        return sum(size(node.op_identifier()) if node.op_identifier() in model.functions else 1 for node in nodes)

    def size(function: ir.OperatorIdentifier) -> int:
        if function not in sizes:
            sizes[function] = MOST_NODES + 1  # a function that calls itself finds this value, and is refused
            sizes[function] = written_out(model.functions[function].all_nodes())
        return sizes[function]

    if (count := written_out(model.graph.all_nodes())) > MOST_NODES:
        raise GraphError(
            f"graph {name}: its functions call each other, and would become {count:.3g} nodes; the limit is "
            f"{MOST_NODES:,}, export it without functions"
        )
    attempt("its functions cannot be inlined", name, lambda: common.InlinePass()(model))
