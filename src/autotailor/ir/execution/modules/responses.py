"""What operators with alternatives say on pictures, added up in forward passes of the unmodified network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from autotailor.ir.alternatives.alternative import Alternative, Array, Responses, of_maps
from autotailor.ir.alternatives.insertion import given_by
from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.graph import Node, Weights
from autotailor.ir.junctions import JUNCTION, OWNER, SOURCES, branch, junctions
from autotailor.ir.moments import ridge_share
from autotailor.ir.operators.rule import Tensor


@dataclass(eq=False)
class Sums:
    """Sums over samples: of values, and of their products."""

    samples: int = 0
    totals: list[Tensor] = field(default_factory=list)

    def add(self, samples: int, *terms: Tensor) -> None:
        """Adds the sums of some more samples, always in the same order."""
        self.samples += samples
        new = [term.double().cpu() for term in terms]
        self.totals = [a + b for a, b in zip(self.totals, new, strict=True)] if self.totals else new

    def means(self) -> list[Array]:
        """The sums, each over the number of samples."""
        return [(total / self.samples).numpy() for total in self.totals]


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
        self._targets = {fit.target: Sums() for fit in self._fits}
        self._features = {fit.branch[-1].name: (fit, Sums()) for fit in self._fits if fit.alternative.fits_features}

    def see(self, node: Node, values: Mapping[str, Tensor]) -> None:
        """Adds what is known of a node that is about to run."""
        if node.kind == JUNCTION and node.inputs[0] in self._targets:
            target = node.inputs[0]
            y = self._rows(self._graph.producers[target], values[target])
            self._targets[target].add(len(y), y.sum(0), y.T @ y)
        elif node.name in self._features:
            fit, sums = self._features[node.name]
            f, y = self._rows(node, values[node.inputs[0]]), self._rows(node, values[fit.target])
            sums.add(len(f), f.sum(0), f.T @ f, f.T @ y)

    def _rows(self, node: Node, x: Tensor) -> Tensor:
        return (x.movedim(1, -1) if node.kind == "Conv" else x).flatten(0, -2).float()

    def solved(self, ridge: float) -> Weights:
        """Weights of all alternatives, nearest to the unmodified network on the images so far.

        Args:
            ridge: see ``Moments``.
        """
        weights: dict[str, Array] = {}
        for fit in self._fits:
            target = self._targets[fit.target]
            if target.samples:
                weights |= fit.alternative.solve(self._graph, fit.node, fit.branch, self._responses(fit, target, ridge))
        return weights

    def _responses(self, fit: _Fit, target: Sums, ridge: float) -> Responses:
        mean, square = target.means()
        if not fit.alternative.fits_features:
            return Responses(mean, square)
        _, sums = self._features[fit.branch[-1].name]
        features, squares, product = sums.means()
        share = ridge_share(ridge, len(features), sums.samples)
        return Responses(mean, square, (features, squares, product), share)


def _fits(elastic: ElasticGraph) -> list[_Fit]:
    graph, fits = elastic.graph, []
    for junction in (junction for junction in junctions(graph) if not junction.get(OWNER)):
        kinds: Sequence[str] = junction.get(SOURCES)
        node = elastic.original.producers[given_by(junction)]
        for position, kind in enumerate(kinds[1:], 1):
            fits.append(_Fit(of_maps()[kind], junction.inputs[0], node, branch(graph, junction, position)))
    return fits
