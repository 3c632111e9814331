"""Fused operators: a producer, what folds into its weights, and what runs inside its kernel (paper, section 4.2.1).

A *place* is one fused group of the graph. The features of a place over the joint choices of the few variables that the
place depends on are deduced, never run. The unique operators of the space are the union of the features of all places.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from autotailor.ir.dimensions.dimension import Batch, Dimension, factors_of
from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.errors import SpaceError
from autotailor.ir.execution.slicing import specialise
from autotailor.ir.feature import OPERANDS, Attributes, Follower, OperatorFeature, Settings, Shape, freeze_attributes
from autotailor.ir.fusion.groups import FusedGroup, find_groups
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.graph import Graph, Node
from autotailor.ir.operators.rule import OperatorRule, rules
from autotailor.ir.space.architecture import check_size
from autotailor.ir.space.derived import Derived, entries
from autotailor.ir.space.gate import Gate, both
from autotailor.ir.space.joint_sizes import joint_sizes
from autotailor.ir.space.metric import Term
from autotailor.ir.space.subnet import IntArray, SubNet

ORDERED = frozenset({"Einsum", "Gemm", "MatMul", "Where"})
"""Kinds whose operands cannot change places. In others, all activations may come before all weights."""


@dataclass(frozen=True, eq=False)
class Place:
    """Where a fused operator stands in the network.

    Attributes:
        group: the nodes that run as this operator.
        variables: names of those that its feature depends on; axis i of ``index`` runs over the choices of
            ``variables[i]``.
        operators: the distinct features that the place can have.
        index: the position in ``operators`` of the feature under each joint choice.
        gate: of its block; None where the block is always there.
        derived: sums over many variables, the last axis of ``index``; None where there are none.
    """

    group: FusedGroup
    variables: tuple[str, ...]
    operators: tuple[OperatorFeature, ...]
    index: IntArray
    gate: Gate | None
    derived: Derived | None = None

    @property
    def label(self) -> str:
        """Name of its producer, for people."""
        return self.group.producer.name

    @property
    def features(self) -> npt.NDArray[np.object_]:
        """The feature for each joint choice: objects in the shape of ``index``."""
        objects = np.empty(len(self.operators), dtype=object)
        objects[:] = self.operators
        features = np.empty(self.index.shape, dtype=object)
        features[...] = objects[self.index]
        return features

    def feature(self, subnet: SubNet) -> OperatorFeature | None:
        """The feature of the place in a SubNet; None where the block of the place is removed."""
        if not subnet.opens(self.gate):
            return None
        number = self.index[entries(self.variables, self.derived, subnet.space, subnet.to_array()[None])]
        return self.operators[int(number.item())]

    def term(self, values: npt.ArrayLike) -> Term:
        """A term from one value for each of the place's operators ``[n]``."""
        table = np.asarray(values, dtype=np.float64)[self.index]
        return Term(self.variables, table, self.gate, self.label, self.derived)


def group_feature(
    graph: Graph, group: FusedGroup, shapes: Mapping[str, Shape], batch_axes: Mapping[str, int] | None = None
) -> OperatorFeature:
    """Feature of a fused group.

    Args:
        graph: the graph of the group.
        group: the nodes.
        shapes: active shapes of all tensors that the nodes read or write.
        batch_axes: activation name to the axis of the batch, where that is not the first.
    """
    producer = specialise(group.producer, shapes)
    rule = rules.find(producer.kind) or OperatorRule()
    attributes = rule.run_time_attributes(producer)
    if (operands := _operands(graph, producer)) is not None:
        attributes = freeze_attributes({**dict(attributes), OPERANDS: operands})
    weights = [shapes[name] for name in producer.inputs if name in graph.weights]
    if group.folded and len(weights) == 1:
        weights.append((shapes[group.outputs[0]][1],))
    reads = graph.activations(producer)
    axis = (batch_axes or {}).get(reads[0], 0) if reads else 0
    return OperatorFeature(
        kind=producer.kind,
        inputs=tuple(batch_first(shapes[name], batch_axes, name) for name in (*reads, *group.added)),
        outputs=tuple(batch_first(shapes[name], batch_axes, name) for name in group.outputs),
        weights=tuple(weights),
        attributes=renumbered(attributes, axis, len(shapes[reads[0]]) if reads else 0),
        followers=tuple(
            Follower(n.kind, (rules.find(n.kind) or OperatorRule()).run_time_attributes(n)) for n in group.followers
        ),
    )


def _operands(graph: Graph, node: Node) -> str | None:
    """Where an operator has weights in front of activations: ``w`` for each weight and ``x`` for each activation."""
    kinds = "".join("w" if name in graph.weights else "x" for name in node.inputs if name)
    return kinds if node.kind in ORDERED and "wx" in kinds else None


def find_places(elastic: ElasticGraph, fusion: FusionRules) -> tuple[Place, ...]:
    """Every fused operator that some SubNet has.

    Raises:
        IllegalSubNetError: a dimension vanishes for some choice.
    """
    return tuple(find_place(elastic, group, gate) for group, gate in find_groups(elastic, fusion))


def find_place(elastic: ElasticGraph, group: FusedGroup, when: Gate | None = None) -> Place:
    """All features that a fused group can have.

    Args:
        elastic: the network.
        group: the nodes.
        when: open where these nodes run as one kernel; None where they do wherever the producer is there.

    Raises:
        IllegalSubNetError: a dimension vanishes for some choice.
        SpaceError: one variable sets both the engine and a size of the group.
    """
    names = [*group.producer.inputs, *group.added, *group.producer.outputs, *group.outputs]
    axes = {name: elastic.propagation.dimensions[name] for name in names if name}
    dimensions = list(dict.fromkeys(d for own in axes.values() for d in own))
    joint = joint_sizes(elastic.architecture, dimensions)
    batch_axes = {name: axis for name, own in axes.items() if (axis := batch_axis(own))}
    features: dict[OperatorFeature, int] = {}
    number = np.empty(len(joint.sizes), dtype=np.int64)
    for row, sizes in enumerate(joint.sizes.tolist()):
        size = dict(zip(dimensions, sizes, strict=True))
        shapes = {name: tuple(check_size(d, size[d], name) for d in own) for name, own in axes.items()}
        number[row] = features.setdefault(group_feature(elastic.graph, group, shapes, batch_axes), len(features))
    gate = both(elastic.node_gates.get(group.producer.name), when)
    place = Place(group, joint.variables, tuple(features), number[joint.rows], gate, joint.derived)
    settings = elastic.settings.get(group.producer.name)
    return place if settings is None else _in_settings(place, settings)


def _in_settings(place: Place, settings: Settings) -> Place:
    """The place with its features in each setting of the producer, in which the whole group runs."""
    if settings.variable in (*place.variables, *(place.derived.variables if place.derived else ())):
        raise SpaceError(
            f"place {place.label}: {settings.variable} sets the engine and sizes of the place; give the engine a "
            "variable of its own"
        )
    features: dict[OperatorFeature, int] = {}
    number = np.array(
        [
            [features.setdefault(replace(each, setting=setting), len(features)) for each in place.operators]
            for setting in settings.choices
        ]
    )
    variables = (settings.variable, *place.variables)
    return replace(place, variables=variables, operators=tuple(features), index=number[:, place.index])


def batch_axis(dimensions: Sequence[Dimension]) -> int:
    """The axis that carries the batch; 0 where none does."""
    batched = (i for i, axis in enumerate(dimensions) if any(isinstance(factor, Batch) for factor in factors_of(axis)))
    return next(batched, 0)


def batch_first(shape: Shape, batch_axes: Mapping[str, int] | None, name: str) -> Shape:
    """A tensor's shape with its batch in front."""
    axis = (batch_axes or {}).get(name, 0)
    return (shape[axis], *shape[:axis], *shape[axis + 1 :])


def renumbered(attributes: Attributes, batch: int, rank: int) -> Attributes:
    """Attributes that name axes (``axis``, ``axes``, ``perm``), renumbered for an input with its batch in front.

    The batch of a permutation's output is in front, too.

    Args:
        attributes: of the operator.
        batch: the axis of the input's batch before it goes to the front.
        rank: of the input.
    """
    values = dict(attributes)
    perm = values.get("perm")
    if batch == 0 and not (isinstance(perm, tuple) and perm and perm[0] != 0):
        return attributes

    def new(axis: int) -> int:
        axis %= rank
        return 0 if axis == batch else axis + (axis < batch)

    if isinstance(axis := values.get("axis"), int):
        values["axis"] = new(axis)
    if isinstance(axes := values.get("axes"), tuple):
        values["axes"] = tuple(new(int(axis)) for axis in axes)
    if isinstance(perm, tuple):
        values["perm"] = (0, *(new(int(axis)) for axis in perm if int(axis) != batch))
    return freeze_attributes(values)
