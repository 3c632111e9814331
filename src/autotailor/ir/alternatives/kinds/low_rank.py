"""A dense map as a pair of factors with few channels between them, by reduced-rank regression on what the map says.

With P the first r eigenvectors of the covariance of the responses y = W x + b on pictures, and m their mean,

    y  ~  P (P' W x + P' (b - m)) + m

leaves the least of y in the mean square of all maps of rank r (Zhang et al., 2016, arXiv 1505.06798, section 3.1.1).
The factors of a rank are a prefix of one pair of matrices, so that the rank is a size like any other. Without pictures
P are the left singular vectors of W, as if x were white.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from autotailor.ir.alternatives.alternative import (
    Alternative,
    Array,
    Branch,
    Responses,
    bias_of,
    dense,
    name_of,
    rank_of,
    read_shares,
    register_alternative,
)
from autotailor.ir.feature import freeze_attributes
from autotailor.ir.graph import Graph, Node, Weights

POINT = freeze_attributes(
    {"kernel_shape": (1, 1), "strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1), "group": 1}
)


@register_alternative
class LowRank(Alternative):
    """``low_rank: [0.75, 0.5]``: two maps that take these shares of the multiply-accumulates of one."""

    kind, nested = "low_rank", True
    usual = (0.5,)

    def choices(self, value: object) -> tuple[str, ...]:
        return read_shares(self.kind, value)

    def fits(self, graph: Graph, node: Node) -> bool:
        weight = dense(graph, node)
        return weight is not None and weight.ndim in (2, 4) and bias_of(graph, node, len(weight)) is not None

    def build(self, graph: Graph, node: Node, choices: Sequence[str]) -> Branch | None:
        weight = dense(graph, node)
        assert weight is not None
        ranks = [rank for _, rank in self._ranks(weight, choices)]
        if not ranks:
            return None
        reads, writes = (name_of(node, self.kind, part) for part in ("reads", "writes"))
        inner, outer = node.outputs[0] + f":{self.kind}.inner", node.outputs[0] + f":{self.kind}"
        biased = node.kind != "MatMul"
        first = Node(
            reads,
            node.kind,
            (node.inputs[0], f"{reads}.weight", *[f"{reads}.bias"] * biased),
            (inner,),
            node.attributes,
        )
        second = Node(
            writes,
            node.kind,
            (inner, f"{writes}.weight", *[f"{writes}.bias"] * biased),
            (outer,),
            POINT if node.kind == "Conv" else node.attributes,
        )
        shape = graph.shapes[node.outputs[0]]
        channels = 1 if node.kind == "Conv" else len(shape) - 1
        narrow = (*shape[:channels], max(ranks), *shape[channels + 1 :])
        branch = (first, second)
        weights = self._factors(graph, node, branch, _singular(weight)[:, : max(ranks)], np.zeros(len(weight)))
        return Branch(branch, outer, weights, {inner: narrow, outer: shape})

    def sizes(self, graph: Graph, node: Node, choices: Sequence[str]) -> Mapping[str, tuple[tuple[str, int], ...]]:
        weight = dense(graph, node)
        return {} if weight is None else {name_of(node, self.kind, "reads"): self._ranks(weight, choices)}

    def solve(self, graph: Graph, node: Node, branch: Sequence[Node], responses: Responses) -> Weights:
        shape = graph.shapes[branch[0].outputs[0]]
        rank = shape[1 if node.kind == "Conv" else -1]
        centre = responses.mean if node.kind != "MatMul" else np.zeros(len(responses.mean))
        _, vectors = np.linalg.eigh(responses.square - np.outer(centre, centre))
        return self._factors(graph, node, branch, vectors[:, : -rank - 1 : -1], centre)

    def _ranks(self, weight: Array, choices: Sequence[str]) -> tuple[tuple[str, int], ...]:
        """Choices with their ranks, as far as two factors take less than the whole map."""
        outputs, inputs = len(weight), weight[0].size
        ranks = ((choice, rank_of(float(choice.partition(":")[2]), inputs, outputs)) for choice in choices)
        return tuple((choice, rank) for choice, rank in ranks if rank * (inputs + outputs) < inputs * outputs)

    def _factors(self, graph: Graph, node: Node, branch: Sequence[Node], basis: Array, centre: Array) -> Weights:
        """The weights of both maps, from directions ``[out, rank]`` of responses that lie around a point."""
        weight = dense(graph, node)
        assert weight is not None
        bias = bias_of(graph, node, len(weight))
        assert bias is not None
        first = np.tensordot(basis.T, weight.astype(np.float64), 1)
        second = basis.reshape(*basis.shape, *[1] * (weight.ndim - 2))
        transposed = node.kind != "Conv" and not node.get("transB", 0)
        arrays = [first.T, second.T] if transposed else [first, second]
        biases = [basis.T @ (bias - centre), centre]
        weights = {n.inputs[1]: array for n, array in zip(branch, arrays, strict=True)}
        weights |= {n.inputs[2]: array for n, array in zip(branch, biases, strict=True) if len(n.inputs) > 2}
        return {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in weights.items()}


def _singular(weight: Array) -> Array:
    """The left singular vectors of a weight ``[out, ...]``, the largest value's first; by the shorter of its sides."""
    flat = weight.reshape(len(weight), -1)
    if flat.shape[0] > flat.shape[1]:
        return np.asarray(np.linalg.svd(flat, full_matrices=False)[0])
    _, vectors = np.linalg.eigh((flat @ flat.T).astype(np.float64))
    return np.asarray(vectors[:, ::-1])
