"""Subgraphs that PyTorch computes with one function, though the graph has several operators.

An exporter writes GELU as five operators and attention as eight. Run one by one, each keeps a result for the backward
pass and reads and writes whole activations. The functions below keep less and read once::

    Mul(Mul(x, Add(Erf(Div(x, 1.414)), 1)), 0.5)                 ->  gelu(x)
    MatMul(Softmax(MatMul(Mul(q, S), Mul(Transpose(k), T))), v)  ->  scaled_dot_product_attention(q, k, v, S T)
    Add(MatMul(x, W), B)                                         ->  linear(x, W^T, B)

The graph itself keeps its operators: features, look-up tables and exported files do not change.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch.nn.functional as F

from autotailor.ir.execution.patterns import ATTENTION, PATTERNS
from autotailor.ir.graph import Graph, Node
from autotailor.ir.operators.rule import Tensor, rules
from autotailor.ir.pattern import Match, find_matches


def attend(node: Node, arguments: Sequence[Any]) -> Tensor:
    """Attention of queries, keys and values ``[n, heads, tokens, channels]``; the node has the factors of scores."""
    q, k, v = arguments
    scale = node.get("scale", 1.0) * node.get("keyscale", 1.0) / node.get("divisor", 1.0)
    return F.scaled_dot_product_attention(q, k, v, scale=scale)


Call = Callable[[Node, Sequence[Any]], Any]
_CALLS: Mapping[str, Call] = {ATTENTION: attend}


def find_call(kind: str) -> Call | None:
    """The function that computes nodes of a kind: of an operator's rule, or of a pattern that is no operator."""
    rule = rules.find(kind)
    return _CALLS.get(kind) if rule is None else rule.call


class Kernels:
    """The subgraphs of one graph that run as one function."""

    def __init__(self, graph: Graph) -> None:
        self._matches: Mapping[str, Match] = find_matches(graph, PATTERNS)

    def joined(self, nodes: Sequence[Node], keep: Collection[str] = ()) -> tuple[Node, ...]:
        """Nodes in which one node stands for each subgraph that is there as a whole.

        Args:
            nodes: some of the graph's, in order; an input may be another tensor where a block was removed.
            keep: tensors that must be computed; a subgraph that would hide one of them stays as it is.
        """
        present = {node.name: node for node in nodes}
        stands_in: dict[str, Node] = {}
        gone: set[str] = set()
        for root, match in self._matches.items():
            hidden = [name for member in match.members if member.name != root for name in member.outputs]
            if all(member.name in present for member in match.members) and not any(name in keep for name in hidden):
                stands_in[root] = _reading(match, present)
                gone.update(member.name for member in match.members if member.name != root)
        return tuple(stands_in.get(node.name, node) for node in nodes if node.name not in gone)


def _reading(match: Match, present: Mapping[str, Node]) -> Node:
    """The node that stands for a match, with the inputs that its members have now."""
    now = {
        before: after
        for member in match.members
        for before, after in zip(member.inputs, present[member.name].inputs, strict=True)
    }
    if all(now.get(name, name) == name for name in match.node.inputs):
        return match.node
    inputs = tuple(now.get(name, name) for name in match.node.inputs)
    return Node(match.node.name, match.node.kind, inputs, match.node.outputs, match.node.attributes)
