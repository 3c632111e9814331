"""Peak memory of inference: resident weights, plus the largest sum of live activations and workspace.

Not a sum of terms but a maximum over steps: each fused operator, in the graph's order, needs what lives while it runs,
its own outputs and its workspace. A tensor lives from its operator to the last one that reads it, and both depend on
the depths: where a block is removed, what it would have read is read by its followers. Operators that run in place
(activations) take over their input's memory where nothing reads it later, and views are no memory of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.fusion.places import FusedGroup, Place, fuse
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.graph import Graph, Node
from autotailor.ir.operators.rule import OperatorRule, rules
from autotailor.ir.space.gate import Gate
from autotailor.ir.space.joint_sizes import joint_image
from autotailor.ir.space.metric import FloatArray, Metric, Term
from autotailor.ir.space.subnet import IntArray
from autotailor.ir.space.variable import Space

MIB = 2.0**20
ROWS = 4096
"""SubNets that are evaluated at once: the table of steps stays within some megabytes."""


@dataclass(frozen=True, eq=False)
class Tensor:
    """Memory that one operator writes and others read.

    Attributes:
        size: its MiB, ungated.
        birth: step that writes it; 0 for the network's input.
        gate: of that step's block; None where the step is always there.
        readers: steps that read it, each with its gate.
        source: index of the tensor whose memory it takes over where nothing else reads that later; None: none.
    """

    size: Term
    birth: int
    gate: Gate | None
    readers: tuple[tuple[int, Gate | None], ...]
    source: int | None


@dataclass(frozen=True, eq=False)
class PeakMemory:
    """Peak memory of an inference over one space; used like a ``Metric``, but no sum of terms.

    Attributes:
        space: the variables.
        resident: weights as they are held all the time.
        tensors: what lives for some steps, in the order of birth.
        workspace: scratch memory of each step that has any, gated.
        bypasses: (tensor read, tensor written, gate) of each block that can be removed, in the order of the trunk.
        steps: number of steps.
        baseline: what a process takes whatever network it runs, MiB.
    """

    space: Space
    resident: Metric
    tensors: tuple[Tensor, ...]
    workspace: Mapping[int, Term]
    bypasses: tuple[tuple[int, int, Gate], ...]
    steps: int
    baseline: float = 0.0
    name: str = "peak_memory"
    unit: str = "MiB"

    def predict(self, subnets: npt.ArrayLike) -> FloatArray:
        """Peak memory for each row of choice indices ``[n, variables]``: ``[n]``, in MiB."""
        array = np.array(subnets, dtype=np.int64, ndmin=2)
        running = [self._running(array[start : start + ROWS]) for start in range(0, len(array), ROWS)]
        total: FloatArray = self.baseline + self.resident.predict(array) + np.concatenate([np.zeros(0), *running])
        return total

    def _running(self, array: IntArray) -> FloatArray:
        """The largest sum of live activations and workspace."""
        rows, last = np.arange(len(array)), self._last_uses(array)
        changes = np.zeros((len(array), self.steps + 2))
        for index, tensor in enumerate(self.tensors):
            size = replace(tensor.size, gate=tensor.gate).values(self.space, array)
            births = np.full(len(array), tensor.birth)
            if tensor.source is not None:  # counted as its source until then
                births += last[:, tensor.source] == tensor.birth
            changes[rows, births] += size
            changes[rows, np.maximum(last[:, index], births) + 1] -= size
        live = np.cumsum(changes[:, :-1], axis=1)
        for step, term in self.workspace.items():
            live[:, step] += term.values(self.space, array)
        return np.asarray(live.max(axis=1), dtype=np.float64)

    def _last_uses(self, array: IntArray) -> IntArray:
        """Last step that reads each tensor ``[n, tensors]``, around removed blocks."""
        last = np.empty((len(array), len(self.tensors)), dtype=np.int64)
        for index, tensor in enumerate(self.tensors):
            last[:, index] = tensor.birth
            for step, gate in tensor.readers:
                reads = step if gate is None else np.where(gate.is_open(self.space.positions, array), step, 0)
                np.maximum(last[:, index], reads, out=last[:, index])
        for read, written, gate in reversed(self.bypasses):
            further = np.where(gate.is_open(self.space.positions, array), 0, last[:, written])
            np.maximum(last[:, read], further, out=last[:, read])
        return last


def resident_weights(space: Space, places: Sequence[Place], known: Mapping[str, float], width: int) -> Metric:
    """Weights in MiB: as the runtime holds them where ``known`` says it (by feature id), else ``width`` bytes each."""

    def size(place: Place) -> list[float]:
        plain = (sum(math.prod(shape) for shape in f.weights) * width / MIB for f in place.operators)
        return [known.get(f.id, value) for f, value in zip(place.operators, plain, strict=True)]

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
    graph, gates = elastic.graph, elastic.gates
    position = {node.name: i for i, node in enumerate(graph.nodes)}
    pairs = sorted(zip(fuse(graph, fusion), places, strict=True), key=lambda pair: position[pair[0].members[-1].name])
    stands_for = _aliases(graph, [group for group, _ in pairs], fusion)
    readers = _readers(graph, pairs, stands_for)
    sizes: dict[object, Term] = {}

    def size(name: str) -> Term:
        dimensions = elastic.propagation.dimensions[name]
        if dimensions not in sizes:
            image = joint_image(elastic.architecture, dimensions)
            counts = np.prod(image.sizes, axis=-1, dtype=np.float64) * (width / MIB)
            sizes[dimensions] = Term(image.variables, counts[image.rows], None, name, image.derived)
        return sizes[dimensions]

    tensors = [Tensor(size(graph.input), 0, None, tuple(readers.get(graph.input, ())), None)]
    number = {graph.input: 0}
    for step, (group, place) in enumerate(pairs, 1):
        for name in dict.fromkeys(stands_for.get(output, output) for output in group.outputs if output):
            if name not in number:
                source = _in_place_source(graph, group, stands_for, number)
                number[name] = len(tensors)
                tensors.append(Tensor(size(name), step, place.gate, tuple(readers.get(name, ())), source))
    scratch = {
        step: place.term([workspace.get(f.id, 0.0) for f in place.operators])
        for step, (_, place) in enumerate(pairs, 1)
        if any(f.id in workspace for f in place.operators)
    }
    around = tuple(
        (number[stands_for.get(b.input, b.input)], number[stands_for.get(b.output, b.output)], gates[b.name])
        for b in elastic.blocks
        if b.name in gates
    )
    weights = resident_weights(elastic.space, places, resident, width)
    return PeakMemory(elastic.space, weights, tuple(tensors), scratch, around, len(pairs), baseline)


def _rule(node: Node) -> OperatorRule:
    return rules.find(node.kind) or OperatorRule()


def _aliases(graph: Graph, groups: Sequence[FusedGroup], fusion: FusionRules) -> dict[str, str]:
    """Tensor to the one whose memory it is: behind views and free operators, and inside fused groups."""
    found: dict[str, str] = {}
    inside = {name: group.outputs[0] for group in groups for node in group.members for name in node.outputs[:1]}
    grouped = {node.name for group in groups for node in group.members}
    for node in graph.nodes:
        activations = graph.activations(node)
        if activations and (_rule(node).view or (node.name not in grouped and node.kind in fusion.free)):
            source = inside.get(activations[0], activations[0])
            for name in node.outputs:
                found[name] = found.get(source, source)
    for name, output in inside.items():
        if name != output:
            found[name] = found.get(output, output)
    return found


def _readers(
    graph: Graph, pairs: Sequence[tuple[FusedGroup, Place]], stands_for: Mapping[str, str]
) -> dict[str, list[tuple[int, Gate | None]]]:
    """Tensor to the steps that read it; the network's output is read after the last."""
    found: dict[str, list[tuple[int, Gate | None]]] = {}
    for step, (group, place) in enumerate(pairs, 1):
        own = {name for node in group.members for name in node.outputs}
        if not _rule(group.producer).view:
            for name in dict.fromkeys(n for node in group.members for n in graph.activations(node) if n not in own):
                found.setdefault(stands_for.get(name, name), []).append((step, place.gate))
    found.setdefault(stands_for.get(graph.output, graph.output), []).append((len(pairs), None))
    return found


def _in_place_source(
    graph: Graph, group: FusedGroup, stands_for: Mapping[str, str], number: Mapping[str, int]
) -> int | None:
    """The tensor on whose memory an elementwise operator can run; the caller keeps the network's input."""
    if not _rule(group.producer).elementwise:
        return None
    read = graph.activations(group.producer)[0]
    index = number[stands_for.get(read, read)]
    return index or None
