"""Channel importance: which channels a SubNet should keep first (Once-for-All sorts by the L1 norm as well).

Importance of channel c of an atom = (sum of |gain_c| over the normalisations of the channel) x (sum of the L1 norms of
the weights that read the channel). Each summand is divided by its mean over the channels; a factor without summands is
one. The norm of the weights that *write* a channel says nothing where a normalisation follows.

Where moments are known, importance is what leaving the channel out would change in what its readers say: the sum of
|W[:, c]|^2 E[x_c^2] over the readers W of the channel, each summand divided by its mean as well.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.ir.dimensions.dimension import Atom, Dimension, Indices, Kernel, Product, Sum
from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.execution.weight_plan import plan_weight, take_array
from autotailor.ir.graph import MIXING, reading_axis

Array = npt.NDArray[Any]


def sort_channels(elastic: ElasticGraph) -> tuple[dict[str, Array], dict[Atom, Indices]]:
    """All weights with coupled channels permuted, the most important first, and the order of each atom's channels."""
    dimensions = elastic.propagation.dimensions
    spatial = {atom for dimension in dimensions[elastic.graph.input] for atom in dimension.atoms()}
    channels = [a for a in elastic.architecture.sliced if not isinstance(a, Kernel) and a not in spatial]
    orders = channel_orders(elastic, channels)
    return permuted(elastic, orders), orders


def permuted(elastic: ElasticGraph, orders: Mapping[Atom, Indices]) -> dict[str, Array]:
    """All weights with the channels of some atoms in other orders; the largest SubNet stays the same."""
    dimensions = elastic.propagation.dimensions
    return {
        name: take_array(weight, plan_weight(dimensions[name], lambda atom: atom.meta, orders))
        for name, weight in elastic.graph.weights.items()
    }


def channel_orders(elastic: ElasticGraph, atoms: Sequence[Atom]) -> dict[Atom, Indices]:
    """For each atom the order of its channels, most important first; ties keep their order."""
    gains: dict[Atom, Array] = {}
    readers: dict[Atom, Array] = {}
    chosen = set(atoms)
    weights, dimensions = elastic.graph.weights, elastic.propagation.dimensions
    for node in elastic.original.nodes:
        if elastic.moments is None and node.kind == "BatchNormalization":
            _spread(gains, _norms(weights[node.inputs[1]], 0), dimensions[node.inputs[1]][0], chosen)
        elif node.kind in MIXING and node.inputs[1] in weights:
            weight, axis = weights[node.inputs[1]], reading_axis(node)
            if elastic.moments is not None and elastic.moments.reads(node.inputs[0], weight.shape[axis]):
                energies = np.diagonal(elastic.moments.channels[node.inputs[0]])
                worth = _norms(weight, axis, 2) * energies
            else:
                worth = _norms(weight, axis)
            _spread(readers, worth, dimensions[node.inputs[1]][axis], chosen)
    ones = {atom: np.ones(atom.meta) for atom in atoms}
    return {
        atom: np.argsort(-gains.get(atom, ones[atom]) * readers.get(atom, ones[atom]), kind="stable") for atom in atoms
    }


def _norms(weight: Array, axis: int, power: int = 1) -> Array:
    """Sums of |w| to a power over all axes of a weight but one."""
    others = tuple(i for i in range(weight.ndim) if i != axis)
    values = np.abs(weight) if power == 1 else np.square(weight, dtype=np.float64)
    norms: Array = np.asarray(values.sum(axis=others, dtype=np.float64))
    return norms


def _spread(into: dict[Atom, Array], norms: Array, dimension: Dimension, atoms: set[Atom]) -> None:
    """Adds a number for each channel of an axis to the atoms of the axis."""
    if isinstance(dimension, Atom):
        if dimension in atoms:
            into[dimension] = into.get(dimension, 0.0) + norms / max(norms.mean(), np.finfo(float).tiny)
    elif isinstance(dimension, Sum):
        offset = 0
        for part in dimension.parts:
            _spread(into, norms[offset : offset + part.meta], part, atoms)
            offset += part.meta
    elif isinstance(dimension, Product):
        shaped = norms.reshape([factor.meta for factor in dimension.factors])
        for i, factor in enumerate(dimension.factors):
            others = tuple(j for j in range(shaped.ndim) if j != i)
            _spread(into, shaped.sum(axis=others), factor, atoms)
