"""Uniform scaling: every width of a network times one factor, the classic alternative to a SuperNet."""

from __future__ import annotations

from autotailor.ir.dimensions.dimension import Atom, factors_of, parts_of
from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.errors import SpaceError
from autotailor.ir.execution.slicing import slice_graph
from autotailor.ir.graph import Graph
from autotailor.ir.propagation import Propagation, propagate
from autotailor.ir.space.architecture import Architecture, Scaled
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Space, Variable

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
        atom: Scaled(WIDTH, None, divisor, granule, 1.0) for atom, granule in _channel_atoms(graph, propagation).items()
    }
    elastic = ElasticGraph(graph, propagation, architecture=Architecture(space, rules))
    return slice_graph(elastic, SubNet(space, (0,)))


def _channel_atoms(graph: Graph, propagation: Propagation) -> dict[Atom, int]:
    """Atoms of channels, with the channels that one unit of each stands for; of heads times channels only heads."""
    axes = dict.fromkeys(d for node in graph.nodes for name in node.outputs for d in propagation.dimensions[name])
    found: dict[Atom, int] = {}
    inner: set[Atom] = set()
    for axis in axes:
        for part in parts_of(axis):
            factors = [f for f in factors_of(part) if isinstance(f, Atom) and not f.is_spatial]
            inner.update(factors[1:])
            for atom in factors[:1]:
                found[atom] = max(found.get(atom, 1), part.meta // atom.meta)
    return {atom: granule for atom, granule in found.items() if atom not in inner}
