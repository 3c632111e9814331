"""Channel importance: which channels a SubNet should keep first (Once-for-All sorts by the L1 norm as well).

Importance of channel c of an atom = (sum of |gain_c| over the normalisations of the channel) x (sum of the L1 norms of
the weights that read the channel). Each summand is divided by its mean over the channels; a factor without summands is
one. The norm of the weights that *write* a channel says nothing where a normalisation follows.

Where moments are known, importance is what leaving the channel out would change in what its readers say: the sum of
|W[:, c]|^2 E[x_c^2] over the readers W of the channel, each summand divided by its mean as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.ir.dimensions.dimension import Atom, Dimension, Indices, Kernel, Product, Sum
from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.execution.weight_plan import plan_weight, take_array

Array = npt.NDArray[Any]


def sort_channels(elastic: ElasticGraph) -> tuple[dict[str, Array], dict[Atom, Indices]]:
    """All weights with coupled channels permuted, the most important first, and the order of each atom's channels."""
    dimensions = elastic.propagation.dimensions
    spatial = {atom for dimension in dimensions[elastic.graph.input] for atom in dimension.atoms()}
    channels = [a for a in elastic.architecture.rules if not isinstance(a, Kernel) and a not in spatial]
    orders = channel_orders(elastic, channels)
    weights = {
        name: take_array(weight, plan_weight(dimensions[name], _meta_size, orders))
        for name, weight in elastic.graph.weights.items()
    }
    return weights, orders


def _meta_size(atom: Atom) -> int:
    return atom.meta


def channel_orders(elastic: ElasticGraph, atoms: Sequence[Atom]) -> dict[Atom, Indices]:
    """For each atom the order of its channels, most important first; ties keep their order."""
    gains: dict[Atom, Array] = {}
    readers: dict[Atom, Array] = {}
    wanted = set(atoms)
    weights, dimensions = elastic.graph.weights, elastic.propagation.dimensions
    for node in elastic.graph.nodes:
        if elastic.moments is None and node.kind == "BatchNormalization":
            _accumulate(gains, weights[node.inputs[1]], dimensions[node.inputs[1]], 0, wanted)
        elif node.kind in ("Conv", "Gemm", "MatMul") and node.inputs[1] in weights:
            axis = _reading_axis(node.kind, bool(node.get("transB", 0)))
            weight = weights[node.inputs[1]]
            norms = np.abs(weight).sum(axis=tuple(i for i in range(weight.ndim) if i != axis), dtype=np.float64)
            if elastic.moments is not None and elastic.moments.reads(node.inputs[0], len(norms)):
                norms = _energies(weight, axis, elastic.moments.channels[node.inputs[0]])
            _spread(readers, norms, dimensions[node.inputs[1]][axis], wanted)
    ones = {atom: np.ones(atom.meta) for atom in atoms}
    return {
        atom: np.argsort(-gains.get(atom, ones[atom]) * readers.get(atom, ones[atom]), kind="stable") for atom in atoms
    }


def _reading_axis(kind: str, transposed: bool) -> int:
    """The axis of a weight along which its operator reads its input."""
    return 1 if kind == "Conv" or transposed else 0


def _energies(weight: Array, axis: int, moments: Array) -> Array:
    """|W[:, c]|^2 E[x_c^2] for each channel c along an axis of a weight."""
    others = tuple(i for i in range(weight.ndim) if i != axis)
    energies: Array = np.square(weight, dtype=np.float64).sum(axis=others) * np.diagonal(moments)
    return energies


def _accumulate(
    into: dict[Atom, Array], weight: Array, axes: Sequence[Dimension], axis: int, wanted: set[Atom]
) -> None:
    """Adds the L1 norms of a weight along one axis to the atoms of the axis."""
    others = tuple(i for i in range(weight.ndim) if i != axis)
    _spread(into, np.abs(weight).sum(axis=others, dtype=np.float64), axes[axis], wanted)


def _spread(into: dict[Atom, Array], norms: Array, dimension: Dimension, wanted: set[Atom]) -> None:
    if isinstance(dimension, Atom):
        if dimension in wanted:
            into[dimension] = into.get(dimension, 0.0) + norms / max(norms.mean(), np.finfo(float).tiny)
    elif isinstance(dimension, Sum):
        offset = 0
        for part in dimension.parts:
            _spread(into, norms[offset : offset + part.meta], part, wanted)
            offset += part.meta
    elif isinstance(dimension, Product):
        shaped = norms.reshape([factor.meta for factor in dimension.factors])
        for i, factor in enumerate(dimension.factors):
            others = tuple(j for j in range(shaped.ndim) if j != i)
            _spread(into, shaped.sum(axis=others), factor, wanted)
