"""Coupled dimensions by propagation over the whole graph (the paper's ``update``, done once and for all).

The rule of every operator is asked in topological order. Sizes that must change together end up as one atom, whatever
the network looks like. Block templates only name the atoms that propagation finds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from autotailor.ir import operators as _registered  # noqa: F401  (registers the rules)
from autotailor.ir.dimensions.dimension import RESOLUTION, Atom, Batch, Constant, Dimension, Resolution, factors_of
from autotailor.ir.dimensions.unifier import Unifier
from autotailor.ir.errors import GraphError
from autotailor.ir.feature import Shape
from autotailor.ir.graph import Graph, Node
from autotailor.ir.operators.rule import Dimensions, OperatorRule, rules

MAP, SIDES = 4, (2, 3)
"""Axes of a map ``[n, channels, height, width]``, and which of them are its sides."""
HUGE = 1e4
"""From here on, values of a weight stand for infinity, as masks of attention have them in place of it."""


@dataclass(frozen=True)
class StaticPart:
    """A node that keeps its meta shape, and why."""

    node: str
    kind: str
    reason: str


@dataclass(frozen=True)
class Need:
    """A least size of a dimension, and the reason why a smaller size is wrong."""

    dimension: Dimension
    least: int
    reason: str


@dataclass(frozen=True, eq=False)
class Propagation:
    """Dimensions of every tensor of a graph, fully resolved.

    Attributes:
        dimensions: activation or weight name to its dimensions; a weight that no rule declared has constant ones.
        static: nodes without a rule that applies, and nodes whose weight alone makes the resolution static.
        resolution_step: resolutions must be a multiple of this number of pixels.
        needs: least sizes that operators state.
    """

    dimensions: Mapping[str, Dimensions]
    static: tuple[StaticPart, ...]
    resolution_step: int = 1
    needs: tuple[Need, ...] = ()

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
        self._dimensions: dict[str, Dimensions] = {graph.input: self._input_dimensions()}
        self._static: list[StaticPart] = []
        self._resampled: set[str] = set()
        self._masks: set[str] = set()
        self._needs: list[Need] = []

    def _input_dimensions(self) -> Dimensions:
        """Dimensions of the input; a square image has one atom for both spatial axes."""
        batch, *rest = self._graph.shapes[self._graph.input]
        first = Batch() if batch == 1 else Constant(batch)
        if len(rest) == 3 and rest[1] == rest[2]:
            resolution = Resolution(RESOLUTION, rest[1])
            return (first, Constant(rest[0]), resolution, resolution)
        return (first, *(Constant(size) for size in rest))

    def run(self) -> Propagation:
        for node in self._graph.nodes:
            reason = self._visit(node)
            if reason:
                self._static.append(StaticPart(node.name, node.kind, reason))
                self._bypass(node)
        for output in self._graph.outputs:
            self._keep(self._dimensions[output])
        self._pin_resolution()
        resolved = {name: self.dimensions(name) for name in (*self._dimensions, *self._graph.weights)}
        sides = (axis for axis in self._dimensions[self._graph.input] if isinstance(axis, Resolution))
        step = next((self._unifier.step(side) for side in sides), 1)
        needs = tuple(replace(need, dimension=self._unifier.resolve(need.dimension)) for need in self._needs)
        return Propagation(resolved, tuple(self._static), step, needs)

    def _keep(self, output: Dimensions) -> None:
        """Freezes the axes of an output, because they have a meaning; the sides of a map may follow the resolution.

        A map as large as the image stays as large as the image.
        """
        image = self._dimensions[self._graph.input]
        for position, dimension in enumerate(output):
            if len(output) == len(image) == MAP and position in SIDES and dimension.meta == image[position].meta:
                self.unify(dimension, image[position])
            atoms = self._unifier.resolve(dimension).atoms()
            if not (len(output) == MAP and position in SIDES and all(atom.is_spatial for atom in atoms)):
                self.freeze(dimension)

    def _visit(self, node: Node) -> str:
        """Asks the rule of a node; returns the reason where the node has to stay static."""
        rule = rules.find(node.kind)
        if rule is None:
            return f"no rule for {node.kind}"
        reason = rule.applies(node, self)
        if not isinstance(reason, str):
            raise GraphError(
                f"operator rule {type(rule).__name__}: applies returned {reason!r} for node {node.name}; expected the "
                "reason why the node stays static, or an empty text where the rule holds"
            )
        if reason:
            return reason
        for name, dimensions in zip(node.outputs, _tuples(rule.deduce(node, self), rule, node), strict=False):
            self._dimensions[name] = dimensions
        return ""

    def _bypass(self, node: Node) -> None:
        """Makes a node static: all tensors that the node reads (also weights) and writes keep their meta shapes."""
        for name in node.inputs:
            for dimension in self.dimensions(name) if name else ():
                self.freeze(dimension)
        batch = any(_first_factor(self.dimensions(name)) == Batch() for name in self._graph.activations(node))
        for name in node.outputs:
            if name:
                sizes: list[Dimension] = [Constant(size) for size in self.shape(name)]
                if batch and sizes and sizes[0].meta == 1:
                    sizes[0] = Batch()
                self._dimensions[name] = tuple(sizes)

    def _pin_resolution(self) -> None:
        """Freezes the resolution where a weight has a spatial axis, unless an operator may resample the weight."""
        for node in self._graph.nodes:
            for name in node.inputs:
                if name in self._graph.weights and f"{node.name}/{name}" not in self._resampled:
                    self._pin(node, name)

    def _pin(self, node: Node, name: str) -> None:
        """Freezes the spatial axes of a weight. That a mask is not resampled is said with the static parts."""
        spatial = [atom for axis in self.dimensions(name) for atom in axis.atoms() if atom.is_spatial]
        for atom in spatial:
            self.freeze(atom)
        if spatial and f"{node.name}/{name}" in self._masks:
            reason = (
                f"{name} holds infinite or huge values, as masks do, and cannot be resampled: the resolution is static"
            )
            self._static.append(StaticPart(node.name, node.kind, reason))

    # What rules may ask and say (operator.Deduction).

    def dimensions(self, name: str) -> Dimensions:
        axes = self._dimensions.get(name)
        if axes is None:
            axes = tuple(Constant(size) for size in self.shape(name))
            if self.is_weight(name):
                axes = tuple(axis if axis.meta == 1 else Atom(f"{name}[{i}]", axis.meta) for i, axis in enumerate(axes))
                self._dimensions[name] = axes
        return tuple(self._unifier.resolve(dimension) for dimension in axes)

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

    def factor(self, axes: Dimensions, metas: Shape) -> Dimensions:
        return self._unifier.factor(axes, metas)

    def cut(self, dimension: Dimension, metas: Shape) -> Dimensions:
        return self._unifier.cut(dimension, metas)

    def require(self, dimension: Dimension, least: int, reason: str) -> None:
        self._needs.append(Need(dimension, min(least, dimension.meta), reason))

    def resample(self, node: Node, name: str) -> None:
        weight = self._graph.weights.get(name)
        if weight is not None and np.issubdtype(weight.dtype, np.floating):
            is_mask = not (np.abs(weight) < HUGE).all()
            (self._masks if is_mask else self._resampled).add(f"{node.name}/{name}")

    def declare(self, weight: str, axes: Dimensions) -> None:
        if len(self.dimensions(weight)) != len(axes):
            raise GraphError(
                f"graph {self._graph.name}: {weight} of shape {list(self._graph.weights[weight].shape)} does not fit "
                f"its operator, which reads {len(axes)} axes; check that onnxruntime runs the file"
            )
        for dimension, axis in zip(self.dimensions(weight), axes, strict=True):
            self.unify(dimension, axis)


def _first_factor(dimensions: Dimensions) -> Dimension | None:
    return factors_of(dimensions[0])[0] if dimensions else None


def _tuples(deduced: object, rule: OperatorRule, node: Node) -> Sequence[Dimensions]:
    """What a rule has deduced, where it has the form of ``OperatorRule.deduce``."""
    if isinstance(deduced, Sequence) and all(isinstance(dimensions, tuple) for dimensions in deduced):
        return deduced
    raise GraphError(
        f"operator rule {type(rule).__name__}: deduce returned {type(deduced).__name__} for node {node.name}; expected "
        "a list with one tuple of dimensions for each output"
    )
