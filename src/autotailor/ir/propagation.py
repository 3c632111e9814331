"""Coupled dimensions by propagation over the whole graph (the paper's ``update``, done once and for all).

Every operator's rule is asked in topological order. What must change together ends up as one atom, whatever
the network looks like; templates only give names to what is found here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autotailor.ir import operators as _registered  # noqa: F401  (registers the rules)
from autotailor.ir.dimension import Atom, Constant, Dimension, Unifier, Window
from autotailor.ir.feature import Shape
from autotailor.ir.graph import Graph, Node
from autotailor.ir.operator import Dimensions, rules

RESOLUTION = "resolution"


@dataclass(frozen=True)
class StaticPart:
    """A node that keeps its meta shape, and why."""

    node: str
    kind: str
    reason: str


@dataclass(frozen=True, eq=False)
class Propagation:
    """Dimensions of every tensor of a graph, fully resolved.

    Attributes:
        dimensions: activation or weight name to its dimensions (weights that nothing declared are constant).
        static: nodes without a rule that applies.
    """

    dimensions: Mapping[str, Dimensions]
    static: tuple[StaticPart, ...]

    def atoms(self, name: str) -> tuple[Atom, ...]:
        """Atoms that the shape of a tensor depends on."""
        return tuple(dict.fromkeys(atom for dimension in self.dimensions[name] for atom in dimension.atoms()))


def propagate(graph: Graph) -> Propagation:
    """Deduces the dimensions of all tensors of a graph."""
    return _Propagator(graph).run()


class _Propagator:
    """Implements ``operator.Deduction`` over one graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._unifier = Unifier()
        self._known: dict[str, Dimensions] = {graph.input: self._input_dimensions()}
        self._static: list[StaticPart] = []

    def _input_dimensions(self) -> Dimensions:
        """Square images have one atom for both spatial axes."""
        shape = self._graph.shapes[self._graph.input]
        if len(shape) == 4 and shape[2] == shape[3]:
            resolution = Atom(RESOLUTION, shape[2])
            return (Constant(shape[0]), Constant(shape[1]), resolution, resolution)
        return tuple(Constant(size) for size in shape)

    def run(self) -> Propagation:
        for node in self._graph.nodes:
            reason = self._visit(node)
            if reason:
                self._static.append(StaticPart(node.name, node.kind, reason))
                self._bypass(node)
        for dimension in self._known[self._graph.output]:
            self.freeze(dimension)
        for name in self._graph.weights:
            self._freeze_spatial(self.dimensions(name))
        resolved = {name: self.dimensions(name) for name in (*self._known, *self._graph.weights)}
        return Propagation(resolved, tuple(self._static))

    def _visit(self, node: Node) -> str:
        """Asks the node's rule; returns the reason where it has to stay static."""
        rule = rules.find(node.kind)
        if rule is None:
            return f"no rule for {node.kind}"
        reason = rule.applies(node, self)
        if reason:
            return reason
        for name, dimensions in zip(node.outputs, rule.deduce(node, self), strict=False):
            self._known[name] = dimensions
        return ""

    def _bypass(self, node: Node) -> None:
        """A static node: what it reads keeps its meta shape, and so does what it writes."""
        for name in self._graph.activations(node):
            for dimension in self.dimensions(name):
                self.freeze(dimension)
        for name in node.outputs:
            if name:
                self._known[name] = tuple(Constant(size) for size in self.shape(name))

    def _freeze_spatial(self, axes: Dimensions) -> None:
        """Weights indexed by a spatial axis tie the resolution down."""
        for axis in axes:
            if any(isinstance(d, Window) or d == Atom(RESOLUTION, d.meta) for d in _parts(self._unifier.resolve(axis))):
                self.freeze(axis)

    # What rules may ask and say (operator.Deduction).

    def dimensions(self, name: str) -> Dimensions:
        known = self._known.get(name)
        if known is None:
            known = tuple(Constant(size) for size in self.shape(name))
            if self.is_weight(name):
                known = tuple(
                    axis if axis.meta == 1 else Atom(f"{name}[{i}]", axis.meta) for i, axis in enumerate(known)
                )
                self._known[name] = known
        return tuple(self._unifier.resolve(dimension) for dimension in known)

    def is_weight(self, name: str) -> bool:
        return name in self._graph.weights

    def shape(self, name: str) -> Shape:
        weight = self._graph.weights.get(name)
        return tuple(weight.shape) if weight is not None else self._graph.shapes[name]

    def fresh(self, node: Node, meta: int, role: str = "out") -> Dimension:
        return Constant(1) if meta == 1 else Atom(f"{node.outputs[0]}:{role}", meta)

    def unify(self, left: Dimension, right: Dimension) -> None:
        self._unifier.unify(left, right)

    def freeze(self, dimension: Dimension) -> None:
        self._unifier.freeze(dimension)

    def declare(self, weight: str, axes: Dimensions) -> None:
        for known, axis in zip(self.dimensions(weight), axes, strict=True):
            self.unify(known, axis)


def _parts(dimension: Dimension) -> tuple[Dimension, ...]:
    """The expression and everything inside it."""
    return (dimension, *(part for child in dimension.children() for part in _parts(child)))
