"""Uniform scaling: every width of a network times one factor, the classic alternative to a SuperNet; new weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.ir.dimensions.dimension import Atom, factors_of, parts_of
from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.errors import SpaceError
from autotailor.ir.execution.slicing import slice_graph
from autotailor.ir.graph import Graph, Node
from autotailor.ir.propagation import Propagation, propagate
from autotailor.ir.space.architecture import Architecture, Scaled
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Space, Variable

Array = npt.NDArray[Any]
WIDTH = "width"


def scale_uniformly(graph: Graph, width: float, divisor: int) -> Graph:
    """The graph with every group of coupled channels at ``width`` times its size, weights sliced.

    Args:
        graph: the original network.
        width: factor, in (0, 1].
        divisor: widths are rounded to its multiples.

    Raises:
        SpaceError: the factor is out of range.
    """
    if not 0 < width <= 1:
        raise SpaceError(f"uniform scaling of {graph.name}: the factor must lie in (0, 1], not {width}")
    propagation = propagate(graph)
    choices = (width, 1.0) if width < 1 else (1.0,)
    space = Space((Variable(WIDTH, WIDTH, choices, len(choices) - 1),))
    rules = {
        atom: Scaled(WIDTH, None, divisor, granule, 1.0) for atom, granule in channel_atoms(graph, propagation).items()
    }
    elastic = ElasticGraph(graph, propagation, architecture=Architecture(space, rules))
    return slice_graph(elastic, SubNet(space, (0,)))


def channel_atoms(graph: Graph, propagation: Propagation) -> dict[Atom, int]:
    """Atoms of channels, with the channels that one unit of each stands for; of heads times channels only heads."""
    axes = dict.fromkeys(d for node in graph.nodes for name in node.outputs for d in propagation.dimensions[name])
    granules: dict[Atom, int] = {}
    inner: set[Atom] = set()
    for axis in axes:
        for part in parts_of(axis):
            factors = [f for f in factors_of(part) if isinstance(f, Atom) and not f.is_spatial]
            inner.update(factors[1:])
            for atom in factors[:1]:
                granules[atom] = max(granules.get(atom, 1), part.meta // atom.meta)
    return {atom: granule for atom, granule in granules.items() if atom not in inner}


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
    if node.kind == "Add":
        return {name: np.zeros_like(graph.weights[name]) for name in node.inputs if _is_bias(name, node, graph)}
    if node.kind == "BatchNormalization":
        return {name: np.full_like(graph.weights[name], i in (0, 3)) for i, name in enumerate(names)}
    if node.kind not in ("Conv", "ConvTranspose", "Gemm", "MatMul") or not names:  # attention multiplies activations
        return {}
    drawn = {name: np.zeros_like(graph.weights[name]) for name in names}
    drawn[names[0]] = _draw(node, graph.weights[names[0]], rng)
    return drawn


def _is_bias(name: str, node: Node, graph: Graph) -> bool:
    """Whether a summand is the bias of a linear layer of tokens, which stands behind the product."""
    products = [graph.producers.get(other) for other in node.inputs]
    is_linear = any(each and each.kind == "MatMul" and each.inputs[1] in graph.weights for each in products)
    return is_linear and name in graph.weights and graph.weights[name].ndim == 1


def _draw(node: Node, weight: Array, rng: np.random.Generator) -> Array:
    if node.kind.startswith("Conv"):
        fan_out = weight[0].size if node.kind == "ConvTranspose" else weight[:, 0].size / node.get("group", 1)
        return rng.normal(0.0, np.sqrt(2.0 / fan_out), weight.shape).astype(weight.dtype)
    fan_in = weight.shape[1] if node.get("transB", 0) else weight.shape[0]
    drawn: Array = rng.uniform(-1.0, 1.0, weight.shape) / np.sqrt(fan_in)
    return drawn.astype(weight.dtype)
