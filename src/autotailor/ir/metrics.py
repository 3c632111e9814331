"""Metrics that follow from the graph: latency from a LUT, multiply-accumulates, parameters.

Each is a sum of terms, one for each place or weight, over the few variables that it depends on (paper, section 4.2.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from autotailor.ir.architecture import Architecture
from autotailor.ir.errors import GraphError
from autotailor.ir.feature import OperatorFeature
from autotailor.ir.fusion import Place
from autotailor.ir.graph import Graph
from autotailor.ir.image import joint_image
from autotailor.ir.operator import OperatorRule, rules
from autotailor.ir.propagation import Propagation
from autotailor.ir.term import Metric, Term
from autotailor.ir.variable import Gate, Space

MILLION = 1e6


def latency(space: Space, places: Sequence[Place], latencies: Mapping[str, float]) -> Metric:
    """The LUT as a metric in milliseconds; ``latencies`` maps feature ids to milliseconds.

    Raises:
        GraphError: the LUT lacks an operator.
    """
    wanted = dict.fromkeys(feature.id for place in places for feature in place.operators)
    missing = [id_ for id_ in wanted if id_ not in latencies]
    if missing:
        raise GraphError(
            f"the LUT lacks {len(missing)} of the {len(wanted)} operators, first {missing[0]}; profile them first"
        )
    return Metric(
        "latency", "ms", space, tuple(place.term([latencies[f.id] for f in place.operators]) for place in places)
    )


def macs(space: Space, places: Sequence[Place]) -> Metric:
    """Multiply-accumulate operations, in millions."""
    return Metric("macs", "M", space, tuple(place.term([_macs(f) for f in place.operators]) for place in places))


def parameters(graph: Graph, propagation: Propagation, architecture: Architecture, gates: Mapping[str, Gate]) -> Metric:
    """Weights but statistics and scalars, in millions; ``gates``: node name to the depth that can remove the node."""
    terms: dict[str, Term] = {}
    for node in graph.nodes:
        rule = rules.find(node.kind) or OperatorRule()
        for position, name in enumerate(node.inputs):
            constant = name not in graph.weights or graph.weights[name].size == 1
            if not constant and position not in rule.statistics and name not in terms:
                terms[name] = _weight_term(name, propagation, architecture, gates.get(node.name))
    return Metric("parameters", "M", architecture.space, tuple(terms.values()))


def _weight_term(name: str, propagation: Propagation, architecture: Architecture, gate: Gate | None) -> Term:
    image = joint_image(architecture, propagation.dimensions[name])
    counts = np.prod(image.sizes, axis=-1, dtype=np.float64) / MILLION
    return Term(image.variables, counts[image.rows], gate, name, image.derived)


def _macs(feature: OperatorFeature) -> float:
    return (rules.find(feature.kind) or OperatorRule()).macs(feature) / MILLION
