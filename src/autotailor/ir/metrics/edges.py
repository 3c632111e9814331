"""Edges: what it costs that an operator reads a tensor which an operator of another setting has written.

Operators that may run in several settings (``ElasticGraph.settings``) leave their tensors in a form of their own: in
another number format, packed otherwise, in the memory of another processor. An operator of another setting that reads
such a tensor waits for a conversion. Who reads whom depends on gates: where a block is removed, its readers read what
the block would read. An edge is a term over the settings of two neighbours, the sizes of the tensor, and these gates.

The network's input and its outputs are in the form of the device's own setting. Where no operator can be set there are
no edges, and latency is the sum over the operators alone.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.feature import Attributes, Settings, Shape
from autotailor.ir.fusion.places import Place
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.metrics.memory import aliases, is_view
from autotailor.ir.space.gate import Gate, together
from autotailor.ir.space.joint_sizes import joint_sizes
from autotailor.ir.space.metric import Term

Crossing = Callable[[Attributes, Attributes, Shape], float]
"""Milliseconds in which a tensor of a shape goes from one setting to another one."""
Source = tuple[Settings | None, Gate | bool]
"""The settings of an operator that may have written a tensor, and where that operator has; None: it cannot be set."""


@dataclass(frozen=True, eq=False)
class Edge:
    """A tensor between two neighbours of which one can be set.

    Attributes:
        tensor: name of the tensor.
        writer: settings of the operator that writes it; None for the device's own.
        reader: settings of the operator that reads it; None for the device's own.
        gate: open where both are there and neighbours; None where they always are.
    """

    tensor: str
    writer: Settings | None
    reader: Settings | None
    gate: Gate | None

    def term(self, elastic: ElasticGraph, crossing: Crossing) -> Term:
        """The cost of the edge, in milliseconds; equal settings cost nothing."""
        joint = joint_sizes(elastic.architecture, elastic.propagation.dimensions[self.tensor])
        shapes = [tuple(sizes) for sizes in joint.sizes.tolist()]
        counts = {own.variable: len(own.choices) for own in (self.writer, self.reader) if own is not None}
        costs = []
        for chosen in itertools.product(*map(range, counts.values())):
            choice = dict(zip(counts, chosen, strict=True))
            one, other = (
                () if own is None else own.choices[choice[own.variable]] for own in (self.writer, self.reader)
            )
            costs.append([0.0 if one == other else crossing(one, other, shape) for shape in shapes])
        table = np.array(costs).reshape(*counts.values(), -1)[..., joint.rows]
        return Term((*counts, *joint.variables), table, self.gate, self.tensor, joint.derived)


def find_edges(elastic: ElasticGraph, places: Sequence[Place], fusion: FusionRules) -> tuple[Edge, ...]:
    """Every pair of neighbours of which one can be set; ``places`` belong to the fusion rules.

    Each reader of a tensor converts it for itself.
    """
    if not elastic.settings:
        return ()
    return tuple(_Neighbours(elastic, places, fusion).edges())


class _Neighbours:
    """Who reads what whom has written."""

    def __init__(self, elastic: ElasticGraph, places: Sequence[Place], fusion: FusionRules) -> None:
        self._elastic = elastic
        self._stands_for = aliases(elastic.graph, [place.group for place in places], fusion)
        self._places = [place for place in places if not is_view(place.group.producer)]
        self._writers: dict[str, list[Source]] = {elastic.graph.input: [(None, True)]}
        for place in self._places:
            for name in dict.fromkeys(map(self._tensor, place.group.outputs)):
                self._writers.setdefault(name, []).append((self._settings(place), place.gate or True))

    def edges(self) -> Iterator[Edge]:
        """The edges, in the order of the operators that read; those of the network's outputs come last."""
        graph = self._elastic.graph
        for place in self._places:
            own = {name for node in place.group.members for name in node.outputs}
            reads = (name for node in place.group.members for name in graph.activations(node) if name not in own)
            for name in dict.fromkeys(map(self._tensor, reads)):
                yield from self._into(name, self._settings(place), place.gate or True)
        for name in map(self._tensor, graph.outputs):
            yield from self._into(name, None, True)

    def _into(self, tensor: str, reader: Settings | None, is_there: Gate | bool) -> Iterator[Edge]:
        """The edges of one reader of a tensor, which is there where a gate is open."""
        for writer, has_written in self._sources(tensor):
            when = together(has_written, is_there)
            if writer != reader and when is not False:
                yield Edge(tensor, writer, reader, when if isinstance(when, Gate) else None)

    def _sources(self, tensor: str) -> Iterator[Source]:
        """Who may have written what is read where the whole network reads a tensor."""
        yield from self._writers.get(tensor, ())
        gates: Mapping[str, Gate] = self._elastic.gates
        for block in self._elastic.blocks:
            if block.name in gates and self._tensor(block.output) == tensor:
                for settings, has_written in self._sources(self._tensor(block.input)):
                    yield settings, together(has_written, gates[block.name].inverse)

    def _settings(self, place: Place) -> Settings | None:
        return self._elastic.settings.get(place.group.producer.name)

    def _tensor(self, name: str) -> str:
        """The tensor whose form a tensor has: behind views, and inside of fused operators."""
        return self._stands_for.get(name, name)
