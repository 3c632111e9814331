"""Random weights for a graph, from which a scaled network is trained for comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.ir.graph import Graph, Node

Array = npt.NDArray[Any]


def initialise(graph: Graph, seed: int) -> Graph:
    """The graph with weights as PyTorch's reference ResNet draws them.

    Convolutions: normal, standard deviation sqrt(2 / fan out) (He et al., 2015). Linear layers: uniform within
    1 / sqrt(fan in). BatchNorm: gain 1, shift 0, statistics 0 and 1. Biases of convolutions and linear layers: 0. All
    other weights, such as those of LayerNorm and position embeddings, stay as they are.
    """
    rng = np.random.default_rng(seed)
    fresh: dict[str, Array] = {}
    for node in graph.nodes:
        fresh.update(_fresh(node, graph, rng))
    return graph.with_weights(fresh)


def _fresh(node: Node, graph: Graph, rng: np.random.Generator) -> dict[str, Array]:
    names = [name for name in node.inputs[1:] if name in graph.weights]
    if node.kind == "BatchNormalization":
        return {name: np.full_like(graph.weights[name], i in (0, 3)) for i, name in enumerate(names)}
    if node.kind not in ("Conv", "Gemm", "MatMul") or not names:  # attention multiplies activations
        return {}
    drawn = {name: np.zeros_like(graph.weights[name]) for name in names}
    drawn[names[0]] = _draw(node, graph.weights[names[0]], rng)
    return drawn


def _draw(node: Node, weight: Array, rng: np.random.Generator) -> Array:
    if node.kind == "Conv":
        fan_out = weight.size / weight.shape[1] / node.get("group", 1)
        return rng.normal(0.0, np.sqrt(2.0 / fan_out), weight.shape).astype(weight.dtype)
    fan_in = weight.shape[1] if node.get("transB", 0) else weight.shape[0]
    drawn: Array = rng.uniform(-1.0, 1.0, weight.shape) / np.sqrt(fan_in)
    return drawn.astype(weight.dtype)
