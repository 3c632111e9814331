"""Junction: one of several sources (``ir/junctions.py``), whose dimensions are coupled.

SubNets have no junctions. Whoever runs a whole graph, junctions included, runs the network as it was given.
"""

from collections.abc import Sequence
from typing import Any

from autotailor.ir.graph import Node
from autotailor.ir.junctions import JUNCTION
from autotailor.ir.operators.rule import Deduction, Dimensions, OperatorRule, Tensor, register


@register
class JunctionRule(OperatorRule):
    """The first source; every other has the same dimensions."""

    kinds = (JUNCTION,)
    view = True

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        first, *others = (deduction.dimensions(name) for name in node.inputs)
        for other in others:
            for one, same in zip(first, other, strict=True):
                deduction.unify(one, same)
        return [deduction.dimensions(node.inputs[0])]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        source: Tensor = arguments[0]
        return source
