"""The fused operators of one SubNet in topological order, with the tensors that each reads and writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autotailor.ir.errors import GraphError
from autotailor.ir.feature import OperatorFeature
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.space.subnet import SubNet

if TYPE_CHECKING:  # graphs and places are made with PyTorch, which whoever only opens a runtime does not need
    from autotailor.ir.elastic_graph import ElasticGraph
    from autotailor.ir.fusion.places import Place


@dataclass(frozen=True)
class PlacedOperator:
    """A fused operator with the tensors around it.

    Attributes:
        feature: the operator.
        inputs: tensors that it reads, in the order of ``feature.inputs``.
        outputs: tensors that it writes.
    """

    feature: OperatorFeature
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def operator_sequence(
    elastic: ElasticGraph, places: Sequence[Place], fusion: FusionRules, subnet: SubNet
) -> tuple[PlacedOperator, ...]:
    """The operators of a SubNet, in topological order.

    Args:
        elastic: the SuperNet's.
        places: of the network.
        fusion: the rules that the places follow; the output of a free operator is its input.
        subnet: which one.
    """
    kept = elastic.remainder(subnet)
    stands_for = dict(kept.stands_for)
    for node in kept.nodes:
        if node.kind in fusion.free:
            stands_for[node.outputs[0]] = node.inputs[0]

    def resolved(name: str) -> str:
        while name in stands_for:
            name = stands_for[name]
        return name

    operators = []
    for place in places:
        if (feature := place.feature(subnet)) is not None:
            reads = (*elastic.graph.activations(place.group.producer), *place.group.added)
            operators.append(PlacedOperator(feature, tuple(map(resolved, reads)), place.group.outputs))
    return _as_needed(operators)


def _as_needed(operators: Sequence[PlacedOperator]) -> tuple[PlacedOperator, ...]:
    """Operators in their order, but each that adds a residual after the operator that computes the residual."""
    missing = {name for operator in operators for name in operator.outputs}
    ordered, waiting = list[PlacedOperator](), list[PlacedOperator]()
    for operator in operators:
        waiting.append(operator)
        while ready := next((o for o in waiting if missing.isdisjoint(o.inputs)), None):
            waiting.remove(ready)
            ordered.append(ready)
            missing.difference_update(ready.outputs)
    return tuple(ordered)


def ends_of(operators: Sequence[PlacedOperator]) -> list[PlacedOperator]:
    """The operators that no other operator reads, in their order: they write a network's outputs."""
    read = {name for operator in operators for name in operator.inputs}
    return [operator for operator in operators if read.isdisjoint(operator.outputs)]


def image_of(key: str, operators: Sequence[PlacedOperator]) -> str:
    """The tensor that operators read and none of them writes.

    Raises:
        GraphError: there is more than one; ``key`` names the SubNet.
    """
    written = {name for operator in operators for name in operator.outputs}
    outside = {name for operator in operators for name in operator.inputs} - written
    if len(outside) != 1:
        raise GraphError(f"SubNet {key}: reads {sorted(outside)} from outside, expected the image alone")
    return outside.pop()
