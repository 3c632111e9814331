"""Peak memory of inference: resident weights, plus the largest sum of live activations and workspace.

Peak memory is no sum of terms but a maximum over steps (see ``liveness``). Here the steps of a network are found, and
the buffers that the steps write and read. An operator that runs in place (an activation function) takes over the
memory of its input where nothing reads that input later, and a view has no memory of its own.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.fusion.groups import FusedGroup
from autotailor.ir.fusion.places import Place
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.graph import Graph, Node
from autotailor.ir.junctions import JUNCTION
from autotailor.ir.metrics.liveness import Buffer, Liveness
from autotailor.ir.operators.rule import Dimensions, OperatorRule, rules
from autotailor.ir.space.gate import Gate
from autotailor.ir.space.joint_sizes import joint_sizes
from autotailor.ir.space.metric import FloatArray, Metric, Term
from autotailor.ir.space.variable import Space

MIB = 2.0**20


@dataclass(frozen=True, eq=False)
class PeakMemory:
    """Peak memory of an inference over one space; used like a ``Metric``, but no sum of terms.

    Attributes:
        space: the variables.
        resident: weights as they are held all the time.
        liveness: the activations and workspaces of all steps.
        baseline: what a process takes whatever network it runs, MiB.
    """

    space: Space
    resident: Metric
    liveness: Liveness
    baseline: float = 0.0
    name: str = "peak_memory"
    unit: str = "MiB"

    def predict(self, subnets: npt.ArrayLike) -> FloatArray:
        """Peak memory for each row of choice indices ``[n, variables]``: ``[n]``, in MiB."""
        array = np.array(subnets, dtype=np.int64, ndmin=2)
        return self.baseline + self.resident.predict(array) + self.liveness.peaks(array)


def resident_weights(space: Space, places: Sequence[Place], held: Mapping[str, float], width: int) -> Metric:
    """Weights in MiB: as the runtime holds them where ``held`` says it (by feature id), else ``width`` bytes each."""

    def size(place: Place) -> list[float]:
        plain = (sum(math.prod(shape) for shape in f.weights) * width / MIB for f in place.operators)
        return [held.get(f.id, value) for f, value in zip(place.operators, plain, strict=True)]

    return Metric("resident_weights", "MiB", space, tuple(place.term(size(place)) for place in places))


def peak_memory(
    elastic: ElasticGraph,
    places: Sequence[Place],
    fusion: FusionRules,
    *,
    resident: Mapping[str, float],
    workspace: Mapping[str, float],
    baseline: float,
    width: int,
) -> PeakMemory:
    """Peak memory of a network's SubNets (see ``SuperNet.peak_memory``); ``places`` belong to the same fusion rules."""
    graph = elastic.graph
    position = {node.name: i for i, node in enumerate(graph.nodes)}
    steps = sorted(places, key=lambda place: position[place.group.members[-1].name])
    stands_for = aliases(graph, [place.group for place in steps], fusion)
    readers = _readers(graph, steps, stands_for)
    sizes = _Sizes(elastic, width)
    buffers = [Buffer(sizes.of(graph.input), 0, None, tuple(readers.get(graph.input, ())), None)]
    number = {graph.input: [0]}
    for step, place in enumerate(steps, 1):
        for name in dict.fromkeys(stands_for.get(output, output) for output in place.group.outputs if output):
            if name not in number or name in place.group.outputs:  # alternatives write the same tensor
                source = _in_place_source(graph, place.group, stands_for, number)
                number.setdefault(name, []).append(len(buffers))
                buffers.append(Buffer(sizes.of(name), step, place.gate, tuple(readers.get(name, ())), source))
    scratch = {
        step: place.term([workspace.get(f.id, 0.0) for f in place.operators])
        for step, place in enumerate(steps, 1)
        if any(f.id in workspace for f in place.operators)
    }
    around = tuple(
        (read, written, elastic.gates[b.name])
        for b in elastic.blocks
        if b.name in elastic.gates
        for read in number[stands_for.get(b.input, b.input)]
        for written in number[stands_for.get(b.output, b.output)]
    )
    weights = resident_weights(elastic.space, places, resident, width)
    liveness = Liveness(elastic.space, tuple(buffers), scratch, around, len(steps))
    return PeakMemory(elastic.space, weights, liveness, baseline)


class _Sizes:
    """Sizes of tensors in MiB, one term for each shape."""

    def __init__(self, elastic: ElasticGraph, width: int) -> None:
        self._elastic, self._width = elastic, width
        self._terms: dict[Dimensions, Term] = {}

    def of(self, name: str) -> Term:
        """The size of a tensor, ungated; tensors of the same dimensions share the term."""
        dimensions = self._elastic.propagation.dimensions[name]
        if dimensions not in self._terms:
            joint = joint_sizes(self._elastic.architecture, dimensions)
            counts = np.prod(joint.sizes, axis=-1, dtype=np.float64) * (self._width / MIB)
            self._terms[dimensions] = Term(joint.variables, counts[joint.rows], None, name, joint.derived)
        return self._terms[dimensions]


def _rule(node: Node) -> OperatorRule:
    return rules.find(node.kind) or OperatorRule()


def aliases(graph: Graph, groups: Sequence[FusedGroup], fusion: FusionRules) -> dict[str, str]:
    """Tensor to the one whose memory it is: behind views and free operators, and inside fused groups."""
    aliases: dict[str, str] = {}
    inside = {name: group.outputs[0] for group in groups for node in group.members for name in node.outputs[:1]}
    grouped = {node.name for group in groups for node in group.members}
    for node in graph.nodes:
        activations = graph.activations(node) if node.kind != JUNCTION else ()  # SubNets have none
        if activations and (_rule(node).view or (node.name not in grouped and node.kind in fusion.free)):
            source = inside.get(activations[0], activations[0])
            for name in node.outputs:
                aliases[name] = aliases.get(source, source)
    for name, output in inside.items():
        if name != output:
            aliases[name] = aliases.get(output, output)
    return aliases


def _readers(
    graph: Graph, places: Sequence[Place], stands_for: Mapping[str, str]
) -> dict[str, list[tuple[int, Gate | None]]]:
    """Tensor to the steps that read it; the network's outputs are read after the last."""
    readers: dict[str, list[tuple[int, Gate | None]]] = {}
    for step, place in enumerate(places, 1):
        members = place.group.members
        own = {name for node in members for name in node.outputs}
        if not _rule(place.group.producer).view:
            for name in dict.fromkeys(n for node in members for n in graph.activations(node) if n not in own):
                readers.setdefault(stands_for.get(name, name), []).append((step, place.gate))
    for output in graph.outputs:
        readers.setdefault(stands_for.get(output, output), []).append((len(places), None))
    return readers


def _in_place_source(
    graph: Graph, group: FusedGroup, stands_for: Mapping[str, str], number: Mapping[str, Sequence[int]]
) -> int | None:
    """The tensor on whose memory an elementwise operator can run, where one operator writes the tensor.

    The caller keeps the network's input.
    """
    if not _rule(group.producer).elementwise:
        return None
    read = graph.activations(group.producer)[0]
    indices = number[stands_for.get(read, read)]
    return (indices[0] or None) if len(indices) == 1 else None


def is_view(node: Node) -> bool:
    """Whether an operator only looks at its input's memory in another way."""
    return _rule(node).view
