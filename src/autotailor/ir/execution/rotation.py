"""Rotates linear streams into the coordinates that their readers need, so that a width is a prefix of these.

The stream of an inverted residual stage is linear: maps write sums into it, and maps read it, with no activation
function between. In other coordinates z = T x of its channels the network computes the same where writers have T W and
readers W T^-1. With C = E[x x'] of what is read and N the sum of W' W over the readers, each divided by its trace on C,

    T = U' C^(-1/2),    U the eigenvectors of C^(1/2) N C^(1/2), the largest first,

so that z is white, and the first k coordinates are those from which the readers' responses are best restored by least
squares. SliceGPT (Ashkboos et al., 2024) rotates the streams of transformers by principal components; LayerNorm, which
treats channels unlike, first has to be taken apart there, and such streams stay as they are here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.ir.dimensions.dimension import Atom, Kernel
from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.execution.batch_norm import normalisations
from autotailor.ir.graph import MIXING, Node, reading_axis
from autotailor.ir.moments import Reader
from autotailor.ir.operators.pointwise.normalization import EPSILON

LINEAR = ("Add", "Sum", "Identity", "Dropout", "AveragePool", "GlobalAveragePool", "ReduceMean", "Flatten", "Reshape")
"""Operators that treat all channels alike, so that they commute with a rotation."""
LEAST = 1e-6
"""Share of the mean square that is added to the diagonal of C; directions that nothing varies along have no inverse."""

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Stream:
    """Channels that maps write and maps read, with nothing between that treats them unlike.

    Attributes:
        atom: of the channels.
        writers: each with the BatchNorm behind it, where there is one.
        readers: weights that read the channels.
    """

    atom: Atom
    writers: tuple[tuple[Node, Node | None], ...]
    readers: tuple[Reader, ...]


def find_streams(elastic: ElasticGraph) -> tuple[Stream, ...]:
    """The streams that can be narrowed, and whose coordinates are nobody's."""
    channels = (atom for atom in elastic.architecture.sliced if not isinstance(atom, Kernel) and not atom.is_spatial)
    streams = (_stream(elastic, atom) for atom in channels)
    return tuple(stream for stream in streams if stream is not None)


def _stream(elastic: ElasticGraph, atom: Atom) -> Stream | None:
    graph, dimensions = elastic.graph, elastic.propagation.dimensions
    if any(atom in axis.atoms() for name in (graph.input, *graph.outputs) for axis in dimensions[name]):
        return None
    writers: dict[str, tuple[Node, Node | None]] = {}
    readers: list[Reader] = []
    for node in graph.nodes:
        touched = [name for name in (*node.inputs, *node.outputs) if _axes(elastic, name, atom)]
        if not touched:
            continue
        before = writers.get(node.inputs[0])
        if node.kind in MIXING and _is_map(node, elastic, atom):
            if node.inputs[0] in touched:
                readers.append(elastic.readers[node.inputs[1]])
            if node.outputs[0] in touched:
                writers[node.outputs[0]] = (node, None)
        elif before is not None and graph.uses[node.inputs[0]] == 1 and node in normalisations(graph):
            writers[node.inputs[0]] = (before[0], node)
        elif node.kind not in LINEAR or not _commutes(node, elastic, atom):
            return None
    return Stream(atom, tuple(writers.values()), tuple(readers)) if writers and readers else None


def _axes(elastic: ElasticGraph, name: str, atom: Atom) -> int:
    """Number of axes of a tensor that the atom has a part in."""
    return sum(atom in axis.atoms() for axis in elastic.propagation.dimensions.get(name, ()))


def _is_map(node: Node, elastic: ElasticGraph, atom: Atom) -> bool:
    """Whether a node reads whole channels, or writes them, or both, with weights of its own."""
    weight, uses = node.inputs[1], elastic.graph.uses
    if weight not in elastic.graph.weights or any(uses[name] != 1 for name in node.inputs[1:] if name):
        return False
    if node.get("group", 1) != 1:
        return False
    axes = elastic.propagation.dimensions[weight]
    reads, writes = axes[reading_axis(node)] == atom, axes[writing_axis(node)] == atom
    return reads + writes == _axes(elastic, weight, atom) and (weight in elastic.readers or not reads)


def writing_axis(node: Node) -> int:
    """The axis of the weight that a convolution or a matrix writes its channels along."""
    return 0 if node.kind == "Conv" else 1 - reading_axis(node)


def _commutes(node: Node, elastic: ElasticGraph, atom: Atom) -> bool:
    """Whether a node reads and writes nothing but activations in which the channels are an axis of their own."""
    names = [name for name in (*node.inputs, *node.outputs) if name]
    axes = [[axis for axis in elastic.propagation.dimensions[name] if axis == atom] for name in names]
    own = all(len(places) == _axes(elastic, name, atom) == 1 for name, places in zip(names, axes, strict=True))
    return own and not any(name in elastic.graph.weights for name in names)


def bases(elastic: ElasticGraph) -> dict[str, Matrix]:
    """Name of each stream's atom to its T ``[n, n]``, where the moments of all that is read are known."""
    moments, turned = elastic.moments, dict[str, Matrix]()
    if moments is None:
        return turned
    for stream in find_streams(elastic):
        if all(moments.reads(reader.tensor, stream.atom.meta) for reader in stream.readers):
            seen = {reader.tensor: moments.channels[reader.tensor] for reader in stream.readers}
            turned[stream.atom.name] = _basis(elastic, stream, [each.astype(np.float64) for each in seen.values()])
    return turned


def _basis(elastic: ElasticGraph, stream: Stream, seen: Sequence[Matrix]) -> Matrix:
    n = stream.atom.meta
    mean = sum((each / max(np.trace(each), np.finfo(float).tiny) for each in seen), np.zeros((n, n))) * (n / len(seen))
    values, vectors = np.linalg.eigh(mean + LEAST * np.eye(n))
    roots = np.sqrt(np.maximum(values, LEAST))
    root, inverse = (vectors * roots) @ vectors.T, (vectors / roots) @ vectors.T
    needs = np.zeros((n, n))
    for reader in stream.readers:
        weight = np.moveaxis(elastic.graph.weights[reader.weight].astype(np.float64), reader.axis, -1).reshape(-1, n)
        square = weight.T @ weight
        needs += square / max(np.trace(square @ mean), np.finfo(float).tiny)
    turned: Matrix = np.linalg.eigh(root @ needs @ root)[1][:, ::-1].T @ inverse
    return turned


def rotate(elastic: ElasticGraph, turned: Mapping[str, Matrix]) -> ElasticGraph:
    """The graph with streams in other coordinates, and its moments; it computes the same, up to rounding.

    BatchNorm behind a writer keeps the mean of what it reads, and takes a variance of 1: the channels that it read are
    mixed now.

    Args:
        elastic: with its channels in the order in which ``turned`` was found.
        turned: see ``bases``.
    """
    weights: dict[str, npt.NDArray[Any]] = dict(elastic.graph.weights)
    read: dict[str, Matrix] = {}
    for stream in find_streams(elastic):
        if (basis := turned.get(stream.atom.name)) is None:
            continue
        inverse = np.linalg.inv(basis)
        for node, norm in stream.writers:
            _write(weights, node, norm, basis)
        for reader in stream.readers:
            weights[reader.weight] = _along(weights[reader.weight], reader.axis, inverse.T)
            read[reader.tensor] = basis
    given = elastic.graph.weights
    moments = elastic.moments.turned(read) if elastic.moments is not None else None
    return replace(elastic.with_weights({n: w.astype(given[n].dtype) for n, w in weights.items()}), moments=moments)


def _write(weights: dict[str, Any], node: Node, norm: Node | None, basis: Matrix) -> None:
    """Puts a map's outputs into the coordinates of a basis, together with the BatchNorm behind it."""
    weight, *bias = (name for name in node.inputs[1:] if name)
    matrix = weights[weight].astype(np.float64)
    axis = writing_axis(node)
    if norm is None:
        weights[weight] = _along(matrix, axis, basis)
        for name in bias:
            weights[name] = basis @ weights[name]
        return
    gain, shift, mean, variance = (weights[name].astype(np.float64) for name in norm.inputs[1:])
    epsilon = norm.get("epsilon", EPSILON)
    scale = gain / np.sqrt(variance + epsilon)
    matrix = _along(_along(matrix, axis, np.diag(scale)), axis, basis)
    size = np.linalg.norm(np.moveaxis(matrix, axis, 0).reshape(len(basis), -1), axis=1)
    size[size < np.finfo(np.float32).tiny] = 1.0
    weights[weight] = _along(matrix, axis, np.diag(1.0 / size))
    for name in bias:
        weights[name] = basis @ (scale * weights[name]) / size
    centre = basis @ (scale * mean)
    vectors = (size, basis @ shift, centre / size, np.full(len(size), 1 - epsilon))
    weights.update(zip(norm.inputs[1:], vectors, strict=True))


def _along(weight: npt.NDArray[Any], axis: int, matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The weight with a matrix applied along an axis: ``matrix[i, j] weight[..., j, ...]``."""
    applied: npt.NDArray[Any] = np.moveaxis(np.tensordot(matrix, weight.astype(np.float64), (1, axis)), 0, axis)
    return applied
