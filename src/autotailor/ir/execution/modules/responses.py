"""What operators with alternatives say on pictures, added up in forward passes of the unmodified network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from autotailor.ir.alternatives.alternative import Alternative, Responses, alternatives
from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.graph import Node, Weights
from autotailor.ir.junctions import SOURCES, branch, junctions
from autotailor.ir.moments import FEW, RIDGE
from autotailor.ir.operators.rule import Tensor


@dataclass(eq=False)
class _Sums:
    """Sums over samples: of values, and of their products."""

    samples: int = 0
    totals: list[Tensor] = field(default_factory=list)

    def add(self, *terms: Tensor) -> None:
        new = [term.double().cpu() for term in terms]
        self.totals = [a + b for a, b in zip(self.totals, new, strict=True)] if self.totals else new

    def means(self) -> list[Tensor]:
        return [total / max(self.samples, 1) for total in self.totals]


@dataclass(frozen=True, eq=False)
class _Fit:
    """An alternative of a node.

    Attributes:
        alternative: its kind.
        target: output of the node.
        node: that the branch stands in for.
        branch: in order.
    """

    alternative: Alternative
    target: str
    node: Node
    branch: tuple[Node, ...]


class ResponseSums:
    """Adds up what alternatives are solved on, while a module runs the nodes of a graph with junctions.

    Args:
        elastic: the network.
    """

    def __init__(self, elastic: ElasticGraph) -> None:
        self._graph = elastic.graph
        self._fits = tuple(_fits(elastic))
        self._targets = {fit.target: _Sums() for fit in self._fits}
        self._features = {fit.branch[-1].name: (fit, _Sums()) for fit in self._fits if fit.alternative.fits_features}

    def see(self, node: Node, values: Mapping[str, Tensor]) -> None:
        """Adds what is known of a node that is about to run."""
        if node.name in self._features:
            fit, sums = self._features[node.name]
            f, y = self._rows(node, values[node.inputs[0]]), self._rows(node, values[fit.target])
            sums.samples += len(f)
            sums.add(f.sum(0), f.T @ f, f.T @ y)
        for name in node.inputs[:1] if node.get(SOURCES) else ():
            if name in self._targets:
                y = self._rows(self._graph.producers[name], values[name])
                self._targets[name].samples += len(y)
                self._targets[name].add(y.sum(0), y.T @ y)

    def _rows(self, node: Node, x: Tensor) -> Tensor:
        return (x.movedim(1, -1) if node.kind == "Conv" else x).flatten(0, -2).float()

    def solved(self) -> Weights:
        """Weights of all alternatives, nearest to the unmodified network on the images so far."""
        found: dict[str, object] = {}
        for fit in self._fits:
            target = self._targets[fit.target]
            if not target.samples:
                continue
            mean, square = (each.numpy() for each in target.means())
            known = self._features.get(fit.branch[-1].name)
            features = None if known is None else tuple(each.numpy() for each in known[1].means())
            share = RIDGE + (FEW * len(features[0]) / target.samples if features else 0.0)
            responses = Responses(mean, square, features, share)  # type: ignore[arg-type]
            found |= fit.alternative.solve(self._graph, fit.node, fit.branch, responses)
        return found  # type: ignore[return-value]


def _fits(elastic: ElasticGraph) -> list[_Fit]:
    graph, found = elastic.graph, []
    for junction in junctions(graph):
        kinds: Sequence[str] = junction.get(SOURCES)
        node = elastic.original.producers[junction.outputs[0]]
        for position, kind in enumerate(kinds[1:], 1):
            found.append(_Fit(alternatives()[kind], junction.inputs[0], node, branch(graph, junction, position)))
    return found
