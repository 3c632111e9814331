"""Patterns: subgraphs that a runtime executes as one operator, written as expressions.

Example::

    Pattern("Swish", "Mul(x, Sigmoid(x))")
    Pattern("MatMul", "Add(MatMul(x, W), B)")

A name in lower case stands for an activation, a name in upper case for a constant, and a number for a constant of one
element with that value. The same name is the same tensor. A keyword is an attribute that the node must have; a name as
the value of a keyword becomes an attribute of the operator, and ``_`` stands for any value. Add and Mul commute.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from autotailor.ir.errors import GraphError
from autotailor.ir.feature import freeze_attributes
from autotailor.ir.graph import Graph, Node

COMMUTATIVE = frozenset({"Add", "Mul"})
TOLERANCE = 1e-4
"""Relative, for constants: exporters write sqrt(2) with few digits."""


@dataclass(frozen=True)
class Pattern:
    """One subgraph that runs as one operator.

    Attributes:
        kind: of the operator that it becomes; an ONNX operator type where ONNX has one.
        expression: the subgraph.
        scalars: constants of one element, whatever the value; a runtime spends no time on them.
        attributes: constants of one element that become attributes of the operator, named in lower case.
        ranks: activation name to the ranks that the activation may have; one that is not named may have any rank.
        vectors: constants with at most one axis longer than 1.
    """

    kind: str
    expression: str
    scalars: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    ranks: tuple[tuple[str, tuple[int, ...]], ...] = ()
    vectors: tuple[str, ...] = ()

    @cached_property
    def root(self) -> ast.Call:
        """The outermost operator.

        Raises:
            GraphError: the expression is no call of an operator.
        """
        try:
            body = ast.parse(self.expression.strip(), mode="eval").body
        except SyntaxError as error:
            raise GraphError(f"pattern {self.kind}: {self.expression!r} cannot be read: {error}") from error
        if not isinstance(body, ast.Call):
            raise GraphError(f"pattern {self.kind}: {self.expression!r} is no operator; write it as Kind(input, ...)")
        return body

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of its activations and constants, in the order of the expression."""
        return tuple(dict.fromkeys(_leaves(self.root)))


def _leaves(call: ast.Call) -> Iterator[str]:
    for argument in call.args:
        if isinstance(argument, ast.Call):
            yield from _leaves(argument)
        elif isinstance(argument, ast.Name):
            yield argument.id


@dataclass(frozen=True)
class Match:
    """Where a pattern was found.

    Attributes:
        node: one node that stands for the subgraph, with its inputs (activations first), its output and its name.
        members: the nodes of the subgraph in the order of the graph; the last one writes the output.
    """

    node: Node
    members: tuple[Node, ...]


@dataclass(frozen=True)
class _Partial:
    """The tensors, nodes and attributes that names stand for so far."""

    tensors: tuple[tuple[str, str], ...] = ()
    nodes: tuple[str, ...] = ()
    attributes: tuple[tuple[str, Any], ...] = ()

    def bind(self, name: str, tensor: str) -> _Partial | None:
        bound = dict(self.tensors)
        if name in bound:
            return self if bound[name] == tensor else None
        return replace(self, tensors=(*self.tensors, (name, tensor)))


def find_matches(graph: Graph, patterns: Sequence[Pattern]) -> dict[str, Match]:
    """Name of the last node of each match to the match; matches are disjoint, and earlier patterns take precedence."""
    matches: dict[str, Match] = {}
    taken: set[str] = set()
    for pattern in patterns:
        for node in graph.nodes:
            match = _match(graph, pattern, node)
            if match is not None and not taken & {member.name for member in match.members}:
                matches[node.name] = match
                taken.update(member.name for member in match.members)
    return matches


def _match(graph: Graph, pattern: Pattern, node: Node) -> Match | None:
    """The pattern with its outermost operator at one node."""
    for partial in _match_call(graph, pattern.root, node, _Partial()):
        members = tuple(n for n in graph.nodes if n.name in partial.nodes) if partial.nodes else ()
        bound = dict(partial.tensors)
        if _is_closed(graph, members, node) and _fits(graph, pattern, bound):
            return Match(_stand_in(graph, pattern, node, partial), members)
    return None


def _match_call(graph: Graph, call: ast.Call, node: Node, partial: _Partial) -> Iterator[_Partial]:
    """Ways to match an operator of the expression and all operators inside its arguments."""
    inputs = [name for name in node.inputs if name]
    if not isinstance(call.func, ast.Name) or node.kind != call.func.id or len(inputs) != len(call.args):
        return
    begun = replace(partial, nodes=(*partial.nodes, node.name))
    for word in call.keywords:
        values = _match_value(word.value, node.get(str(word.arg)))
        if values is None:
            return
        begun = replace(begun, attributes=(*begun.attributes, *values.items()))
    orders = [inputs, inputs[::-1]] if node.kind in COMMUTATIVE else [inputs]
    for order in orders:
        yield from _match_inputs(graph, list(zip(call.args, order, strict=True)), begun)


def _match_value(expr: ast.expr, value: Any) -> dict[str, Any] | None:
    """Values that the names in an attribute's pattern stand for; None where the value does not match."""
    if isinstance(expr, ast.Name):
        return {} if expr.id == "_" else {expr.id: value}
    if not isinstance(expr, ast.Tuple):
        return {} if ast.literal_eval(expr) == value else None
    if not isinstance(value, tuple) or len(value) != len(expr.elts):
        return None
    parts = [_match_value(part, single) for part, single in zip(expr.elts, value, strict=True)]
    if any(part is None for part in parts):
        return None
    return {name: single for part in parts if part for name, single in part.items()}


def _match_inputs(graph: Graph, pairs: Sequence[tuple[ast.expr, str]], partial: _Partial) -> Iterator[_Partial]:
    if not pairs:
        yield partial
        return
    (expr, tensor), *rest = pairs
    for bound in _match_tensor(graph, expr, tensor, partial):
        yield from _match_inputs(graph, rest, bound)


def _match_tensor(graph: Graph, expr: ast.expr, tensor: str, partial: _Partial) -> Iterator[_Partial]:
    """Ways to match one tensor: an operator's output, a constant, or any activation."""
    if isinstance(expr, ast.Call):
        if tensor in graph.producers:
            yield from _match_call(graph, expr, graph.producers[tensor], partial)
    elif isinstance(expr, ast.Name):
        if (tensor in graph.weights) == expr.id.isupper() and (bound := partial.bind(expr.id, tensor)) is not None:
            yield bound
    elif _scalar(graph, tensor) is not None and math.isclose(
        float(_scalar(graph, tensor) or 0.0), float(ast.literal_eval(expr)), rel_tol=TOLERANCE
    ):
        yield partial


def _scalar(graph: Graph, tensor: str) -> float | None:
    """Value of a constant of one element; None for anything else."""
    weight = graph.weights.get(tensor)
    return float(weight.reshape(-1)[0]) if weight is not None and weight.size == 1 else None


def _is_closed(graph: Graph, members: Sequence[Node], root: Node) -> bool:
    """Whether no node outside of the subgraph reads an inner tensor of it."""
    names = {member.name for member in members}
    inner = [name for member in members if member is not root for name in member.outputs]
    return all(
        name not in graph.outputs and all(reader.name in names for reader in graph.consumers.get(name, ()))
        for name in inner
    )


def _fits(graph: Graph, pattern: Pattern, bound: Mapping[str, str]) -> bool:
    """Whether the bound tensors have the ranks and sizes that the pattern says."""
    scalars = all(_scalar(graph, bound[name]) is not None for name in (*pattern.scalars, *pattern.attributes))
    ranks = all(len(graph.shapes[bound[name]]) in allowed for name, allowed in pattern.ranks)
    vectors = all(sum(size > 1 for size in graph.weights[bound[name]].shape) <= 1 for name in pattern.vectors)
    return scalars and ranks and vectors


def _stand_in(graph: Graph, pattern: Pattern, node: Node, partial: _Partial) -> Node:
    bound = dict(partial.tensors)
    attributes = dict(partial.attributes) | {name.lower(): _scalar(graph, bound[name]) for name in pattern.attributes}
    names = [name for name in pattern.names if name not in (*pattern.scalars, *pattern.attributes)]
    inputs = tuple(bound[name] for name in sorted(names, key=str.isupper))
    return Node(node.name, pattern.kind, inputs, node.outputs, freeze_attributes(attributes))
