"""Puts back the BatchNorm that an exporter folded away; it is the identity until the largest SubNet is calibrated.

A file for inference has BatchNorm folded into its convolutions: w' = w gain / sqrt(variance + epsilon). Every SubNet
needs statistics of its own, and therefore the BatchNorm that was folded. A *placeholder* is re-inserted, which is the
identity and knows nothing of the statistics:

    y = sqrt(1 + epsilon) (x - 0) / sqrt(1 + epsilon) + 0.

The first calibration sees the (mean, variance) of x in the largest SubNet, and keeps the BatchNorm the identity:

    y = sqrt(variance + epsilon) (x - mean) / sqrt(variance + epsilon) + mean.

From then on every other SubNet can be recalibrated like a SubNet of a network whose BatchNorm was never folded.

A BatchNorm that came with the network takes on the statistics (m, v) of other pictures and computes the same, too:

    y = g (x - mean) / sqrt(variance + epsilon) + b
      = g' (x - m) / sqrt(v + epsilon) + b',   g' = g sqrt((v + epsilon) / (variance + epsilon)),
                                               b' = b + g (m - mean) / sqrt(variance + epsilon).

The formula gives a placeholder the gain and the shift above. Estimating the largest SubNet's statistics anew on these
pictures then changes nothing, where the statistics of a large data set would be lost, and accuracy with them.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.ir.feature import freeze_attributes
from autotailor.ir.graph import Graph, Node
from autotailor.ir.junctions import select
from autotailor.ir.operators.pointwise.normalization import EPSILON

KIND = "BatchNormalization"
FOLDED_INTO = ("Conv", "ConvTranspose", "Gemm")
_VECTORS = ("gain", "shift", "mean", "variance")

Array = npt.NDArray[Any]


def reinsert(graph: Graph, outputs: Collection[str]) -> Graph:
    """Puts a placeholder behind each Conv or Gemm that writes one of some tensors; the graph computes the same."""
    nodes: list[Node] = []
    renamed: dict[str, str] = {}
    shapes, weights = dict(graph.shapes), dict(graph.weights)
    for node in graph.nodes:
        nodes.append(replace(node, inputs=tuple(renamed.get(name, name) for name in node.inputs)))
        output = node.outputs[0]
        if node.kind in FOLDED_INTO and output in outputs and output not in graph.outputs:
            normalised = f"{output}/{KIND}"
            vectors = {f"{normalised}.{name}": vector for name, vector in _identity(graph.shapes[output][1]).items()}
            attributes = freeze_attributes({"epsilon": EPSILON})
            nodes.append(Node(f"{node.name}/{KIND}", KIND, (output, *vectors), (normalised,), attributes))
            renamed[output], shapes[normalised] = normalised, graph.shapes[output]
            weights.update(vectors)
    return replace(graph, nodes=tuple(nodes), shapes=shapes, weights=weights)


def biased_convolutions(graph: Graph) -> frozenset[str]:
    """Tensors behind every convolution with a bias and without a BatchNorm; gates (maps of one pixel) are left out."""
    return frozenset(node.outputs[0] for node in graph.nodes if _could_be_folded(node, graph))


def _could_be_folded(node: Node, graph: Graph) -> bool:
    if node.kind not in ("Conv", "ConvTranspose") or len(node.inputs) < 3 or not node.inputs[2]:
        return False
    output = node.outputs[0]
    normalised = any(reader.kind == KIND for reader in graph.consumers.get(output, ()))
    return not normalised and any(size > 1 for size in graph.shapes[output][2:])


def placeholders(graph: Graph) -> tuple[Node, ...]:
    """BatchNorm nodes that were re-inserted and have not been calibrated: their weights are those of the identity."""
    return tuple(node for node in graph.nodes if node.kind == KIND and _is_placeholder(node, graph))


def adopt(graph: Graph, statistics: Mapping[str, tuple[Array, Array]], *, every: bool = False) -> Graph:
    """Gives BatchNorm the statistics of its inputs; the graph computes the same, up to rounding.

    Args:
        graph: with placeholders.
        statistics: node name to mean ``[c]`` and variance ``[c]`` in the largest SubNet.
        every: also gives them to BatchNorm that is no placeholder.
    """
    weights: dict[str, Array] = {}
    given = {node.name for node in select(graph, {})}  # what no SubNet runs that was seen has no statistics
    for node in (node for node in (normalisations(graph) if every else placeholders(graph)) if node.name in given):
        mean, variance = (np.asarray(vector, dtype=np.float64) for vector in statistics[node.name])
        gain, shift, old_mean, old_variance = (graph.weights[name].astype(np.float64) for name in node.inputs[1:])
        epsilon = node.get("epsilon", EPSILON)
        scale = gain / np.sqrt(old_variance + epsilon)
        shift = shift + scale * (mean - old_mean)
        writer = _unfolded(graph, node) if every else None
        if writer is not None:
            size = _sizes(graph.weights[writer.inputs[1]])
            divided, bias = _divided(graph, writer, size)
            weights.update(divided)
            mean, variance, scale = (mean - bias) / size, variance / size**2, scale * size
        vectors = (scale * np.sqrt(variance + epsilon), shift, mean, variance)
        weights.update({n: v.astype(np.float32) for n, v in zip(node.inputs[1:], vectors, strict=True)})
    return graph.with_weights(weights)


def _unfolded(graph: Graph, node: Node) -> Node | None:
    """The convolution whose weight a BatchNorm was folded into, where its outputs can be scaled; else None."""
    writer = graph.producers.get(node.inputs[0])
    if writer is None or writer.kind != "Conv" or not _is_placeholder(node, graph):
        return None
    written = writer.outputs[0]
    is_alone = graph.uses[written] == 1 and written not in graph.outputs and _has_own(writer, graph)
    return writer if is_alone else None


def _sizes(weight: Array) -> Array:
    """Size ``[c]`` of each output channel of a weight: 1 where its entries have a mean square of 1 / (their number)."""
    rows = weight.astype(np.float64).reshape(len(weight), -1)
    sizes = np.sqrt(np.square(rows).sum(axis=1))
    return np.where(sizes > np.finfo(np.float32).tiny, sizes, 1.0)


def _divided(graph: Graph, writer: Node, size: Array) -> tuple[dict[str, Array], Array]:
    """Weight and bias of a convolution whose outputs are divided by ``size`` ``[c]``, and the bias that it had.

    A folded weight has the gain and the statistics of its BatchNorm in it: entries are small where the input is large,
    and some channels are a thousand times as large as others. Steps of AdamW are of the size of the learning rate, so
    that one rate serves all weights where their size is that of an initialisation. On a pretrained EfficientNet-Lite0 a
    rate of 1e-3 loses 40 points in its first epoch where channels of the output have variance 1, 14 points so.

    The bias becomes 0, and goes into the mean of the BatchNorm: in a channel that says next to nothing, whose weights
    are tiny, the divided bias would be a million, and float32 would keep nothing of the weights beside it.
    """
    weight, *bias = (graph.weights[name].astype(np.float64) for name in writer.inputs[1:] if name)
    parts = (weight / size.reshape(-1, *(1,) * (weight.ndim - 1)), *(np.zeros_like(each) for each in bias))
    divided = {n: part.astype(np.float32) for n, part in zip(writer.inputs[1:], parts, strict=False)}
    return divided, sum(bias, np.zeros_like(size))


def normalisations(graph: Graph) -> tuple[Node, ...]:
    """BatchNorm nodes whose four vectors are weights of their own."""
    return tuple(node for node in graph.nodes if node.kind == KIND and _has_own(node, graph))


def _has_own(node: Node, graph: Graph) -> bool:
    """Whether all inputs of a node but the first are weights that no other node reads."""
    return all(name in graph.weights and graph.uses[name] == 1 for name in node.inputs[1:] if name)


def _identity(channels: int) -> dict[str, Array]:
    zeros, ones = np.zeros(channels, np.float32), np.ones(channels, np.float32)
    gain = np.sqrt(ones.astype(np.float64) + EPSILON).astype(np.float32)
    return dict(zip(_VECTORS, (gain, zeros, zeros.copy(), ones), strict=True))


def _is_placeholder(node: Node, graph: Graph) -> bool:
    vectors = [graph.weights.get(name) for name in node.inputs[1:]]
    if any(vector is None for vector in vectors):
        return False
    expected = _identity(len(vectors[0])).values() if vectors[0] is not None else ()
    return all(np.array_equal(v, e) for v, e in zip(vectors, expected, strict=True) if v is not None)
