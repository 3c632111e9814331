"""Metrics that follow from the graph: latency from a LUT, multiply-accumulates, parameters.

Each metric is a sum of terms, one for each place or weight, over the few variables that the place or weight depends on
(paper, section 4.2.1). Which metrics a search knows stands in ``search/metrics.py``.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.errors import GraphError
from autotailor.ir.feature import OperatorFeature
from autotailor.ir.fusion.places import Place
from autotailor.ir.metrics.uncertainty import LatencyError
from autotailor.ir.operators.rule import OperatorRule, rules
from autotailor.ir.space.gate import Gate
from autotailor.ir.space.joint_sizes import joint_sizes
from autotailor.ir.space.metric import Metric, Term
from autotailor.ir.space.variable import Space

MILLION = 1e6


def latency(space: Space, places: Sequence[Place], latencies: Mapping[str, float]) -> Metric:
    """The LUT as a metric in milliseconds; ``latencies`` maps feature ids to milliseconds.

    Raises:
        GraphError: the LUT lacks an operator.
    """
    _check_known(places, latencies)
    return Metric(
        "latency", "ms", space, tuple(place.term([latencies[f.id] for f in place.operators]) for place in places)
    )


def latency_error(space: Space, places: Sequence[Place], standard_errors: Mapping[str, float]) -> LatencyError:
    """Standard error of the predicted latency in ms; ``standard_errors`` maps feature ids to milliseconds.

    Raises:
        GraphError: the LUT lacks an operator.
    """
    _check_known(places, standard_errors)
    return LatencyError(space, places, standard_errors)


def energy(space: Space, places: Sequence[Place], energies: Mapping[str, float]) -> Metric:
    """Energy above idle in millijoules; ``energies`` maps feature ids to millijoules.

    Raises:
        GraphError: the energy of an operator is unavailable: the device has no sensor, or it was not read.
    """
    _check_known(places, energies, "the energy of each operator (unavailable where a device has no sensor)")
    terms = tuple(place.term([energies[f.id] for f in place.operators]) for place in places)
    return Metric("energy", "mJ", space, terms)


def _check_known(places: Sequence[Place], values: Mapping[str, float], what: str = "each operator") -> None:
    """Refuses a LUT with gaps."""
    ids = dict.fromkeys(feature.id for place in places for feature in place.operators)
    missing = [id_ for id_ in ids if id_ not in values]
    if missing:
        raise GraphError(
            f"the LUT lacks {len(missing)} of the {len(ids)} operators, first {missing[0]}: expected {what}; "
            "profile them first"
        )


def macs(space: Space, places: Sequence[Place]) -> Metric:
    """Multiply-accumulate operations, in millions."""
    return Metric(
        "macs", "M", space, tuple(place.term([operator_macs(f) for f in place.operators]) for place in places)
    )


def parameters(elastic: ElasticGraph) -> Metric:
    """Weights without statistics and scalars, in millions."""
    terms: dict[str, Term] = {}
    weights = elastic.graph.weights
    for node in (each for each in elastic.graph.nodes if each.name not in elastic.absent):
        rule = rules.find(node.kind) or OperatorRule()
        for position, name in enumerate(node.inputs):
            constant = name not in weights or weights[name].size == 1
            if not constant and position not in rule.statistics and name not in terms:
                terms[name] = _weight_term(elastic, name, elastic.node_gates.get(node.name))
    return Metric("parameters", "M", elastic.space, tuple(terms.values()))


def _weight_term(elastic: ElasticGraph, name: str, gate: Gate | None) -> Term:
    joint = joint_sizes(elastic.architecture, elastic.propagation.dimensions[name])
    counts = np.prod(joint.sizes, axis=-1, dtype=np.float64) / MILLION
    return Term(joint.variables, counts[joint.rows], gate, name, joint.derived)


def operator_macs(feature: OperatorFeature) -> float:
    """Multiply-accumulate operations of one operator, in millions; operators fused into the operator have none."""
    return (rules.find(feature.kind) or OperatorRule()).macs(feature) / MILLION
