"""The SuperNet: a network, its variables, and every SubNet inside it (paper, section 4.1).

The functions of the paper's TailorIR are pure here. ``SubNet.transform`` applies a modification. ``shapes`` and
``operators`` are the paper's ``update``: they deduce everything that depends on a modification, or refuse with a
reason. ``build`` and ``module`` make SubNets executable.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch
from torch import nn

from autotailor.ir import storage
from autotailor.ir.alternatives.insertion import with_alternatives
from autotailor.ir.blocks.block import Block
from autotailor.ir.blocks.stage import Stage
from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.errors import IllegalSubNetError
from autotailor.ir.execution.head import Head, find_head
from autotailor.ir.execution.importance import permuted, sort_channels
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.execution.modules.statistics import Statistics, as_weights
from autotailor.ir.execution.onnx_writer import to_onnx
from autotailor.ir.execution.rotation import bases, rotate
from autotailor.ir.execution.slicing import slice_graph
from autotailor.ir.feature import OperatorFeature, Shape
from autotailor.ir.fusion.places import Place, find_places
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.fusion.sequence import PlacedOperator, operator_sequence
from autotailor.ir.graph import Graph
from autotailor.ir.metrics import sums
from autotailor.ir.metrics.edges import Crossing, find_edges
from autotailor.ir.metrics.elasticity import ElasticShare, elastic_share
from autotailor.ir.metrics.memory import PeakMemory, peak_memory
from autotailor.ir.metrics.uncertainty import LatencyError
from autotailor.ir.moments import Moments
from autotailor.ir.propagation import Propagation, StaticPart
from autotailor.ir.proposal.request import SpaceRequest
from autotailor.ir.proposal.section import space_section
from autotailor.ir.proposal.variables import with_space
from autotailor.ir.space import subnet as subnets
from autotailor.ir.space.metric import Metric
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Space

UNFUSED = FusionRules("none")


@dataclass(frozen=True, eq=False)
class SuperNet:
    """A network that contains all its SubNets; immutable.

    Attributes:
        elastic: the unmodified network with the shared weights, and what can change in it.
        space_config: the configuration its space was made from; None where it was proposed.
        sorting: atom name to the permutation of its channels that was applied to the original weights.
        rotations: atom name to the matrix T ``[n, n]`` that its channels were rotated with before they were sorted.
    """

    elastic: ElasticGraph
    space_config: Mapping[str, Any] | None = None
    sorting: Mapping[str, Sequence[int]] = field(default_factory=dict)
    rotations: dict[str, npt.NDArray[np.float64]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        graph: Graph,
        space_config: Mapping[str, Any] | None = None,
        sorting: Mapping[str, Sequence[int]] | None = None,
    ) -> SuperNet:
        """The SuperNet of a graph with the space that a configuration asks for; with None a space is proposed.

        Raises:
            SpaceError: the space asks for what the network cannot offer.
        """
        request = SpaceRequest.from_config(space_config)
        if request.alternatives:
            graph = with_alternatives(graph, request.alternatives_of)
        elastic = with_space(ElasticGraph.of(graph), request)
        return cls(elastic, space_config, sorting or {})

    # What the graph says.

    @property
    def graph(self) -> Graph:
        """The unmodified network with the shared weights, and the alternatives of its blocks."""
        return self.elastic.graph

    @property
    def original(self) -> Graph:
        """The unmodified network alone, without alternatives and junctions."""
        return self.elastic.original

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the network's input and outputs: an ONNX file's own, or ``input`` and ``output``."""
        return self.graph.input, *self.graph.outputs

    @property
    def name(self) -> str:
        """Name of the network."""
        return self.graph.name

    @property
    def propagation(self) -> Propagation:
        """Dimensions of all tensors."""
        return self.elastic.propagation

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Blocks in the order of the trunk."""
        return self.elastic.blocks

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Stages in the order of the trunk."""
        return self.elastic.stages

    @property
    def space(self) -> Space:
        """The variables."""
        return self.elastic.space

    def space_section(self) -> dict[str, Any]:
        """The ``space`` section of a configuration that gives this space again, to be edited where it was proposed."""
        return space_section(self.elastic, SpaceRequest.from_config(self.space_config))

    @property
    def static_parts(self) -> tuple[StaticPart, ...]:
        """Nodes that keep their shape, with reasons."""
        return self.propagation.static

    @property
    def input_shape(self) -> Shape:
        """Meta shape of the input: ``(1, channels, height, width)``."""
        return self.graph.shapes[self.graph.input]

    @property
    def num_classes(self) -> int:
        """Length of the row of logits; 0 where the network returns something else, or several tensors."""
        return self.output_shapes[0][-1] if [len(shape) for shape in self.output_shapes] == [2] else 0

    @property
    def output_shapes(self) -> tuple[Shape, ...]:
        """Meta shape of each output, batch first: ``(1, classes)`` of a classifier, ``(1, channels, h, w)`` of maps."""
        return tuple(self.graph.shapes[name] for name in self.graph.outputs)

    @cached_property
    def head(self) -> Head:
        """The tensor of the logits, and the final activation where there is one."""
        return find_head(self.graph)

    def largest(self) -> SubNet:
        """The unmodified network."""
        return subnets.largest(self.space)

    def smallest(self) -> SubNet:
        """Every variable at the choice that leaves least of the network."""
        return subnets.smallest(self.space)

    def sample(self, rng: random.Random | np.random.Generator) -> SubNet:
        """A SubNet, uniformly from the distinct ones."""
        return subnets.sample(self.space, rng)

    def shapes(self, subnet: SubNet) -> dict[str, Shape]:
        """Deduced shape of every activation of a SubNet, batch 1.

        Raises:
            IllegalSubNetError: a dimension vanishes.
        """
        nodes = self.elastic.remainder(self._own(subnet)).nodes
        names = [self.graph.input, *(name for node in nodes for name in node.outputs)]
        return self.elastic.shapes(names, self.elastic.sizes(subnet))

    def _own(self, subnet: SubNet) -> SubNet:
        """The SubNet, where it is one of this space.

        Raises:
            IllegalSubNetError: it is something else, or a SubNet of another space.
        """
        if not isinstance(subnet, SubNet):
            raise IllegalSubNetError(
                f"network {self.name}: expected a SubNet, not {type(subnet).__name__}; largest(), smallest() and "
                "sample(rng) give one, and SubNet.from_assignment(net.space, {VARIABLE: CHOICE}) makes one"
            )
        if subnet.space != self.space:
            raise IllegalSubNetError(
                f"network {self.name}: SubNet {subnet.id} belongs to another space; take one of this network, which "
                "SubNet.from_assignment(net.space, subnet.assignment) gives where both have its variables"
            )
        return subnet

    # Executable forms.

    def module(self, *, logits: bool = False) -> ElasticModule:
        """The whole SuperNet as one module on copies of the shared weights.

        Args:
            logits: leave out the final activation (``head``), where there is one; training wants that.
        """
        return ElasticModule(self.elastic, logits)

    def slice(self, subnet: SubNet, statistics: Statistics | None = None) -> Graph:
        """The standalone graph of a SubNet; statistics replace those of its normalisations."""
        sliced = slice_graph(self.elastic, self._own(subnet))
        return sliced if statistics is None else sliced.with_weights(as_weights(sliced, statistics))

    def build(self, subnet: SubNet, statistics: Statistics | None = None, *, logits: bool = False) -> nn.Module:
        """A standalone module in evaluation mode with sliced weights.

        Args:
            subnet: to be built.
            statistics: of its normalisations.
            logits: leave out the final activation (``head``), where there is one.
        """
        return GraphModule(self.slice(subnet, statistics), logits).eval()

    def export_onnx(self, subnet: SubNet, path: str | Path, statistics: Statistics | None = None) -> None:
        """Writes a SubNet as ONNX, opset 17, batch 1; input and outputs are called as in the original network.

        Raises:
            GraphError: there is no such folder.
        """
        model = to_onnx(self.slice(subnet, statistics), names=self.names)
        storage.check_folder(Path(path))
        onnx.save(model, str(path))

    # Weights.

    def with_weights(self, weights: Mapping[str, Any]) -> SuperNet:
        """The same SuperNet over other weights (arrays by the graph's names)."""
        return replace(self, elastic=self.elastic.with_weights(weights))

    def absorb(self, module: ElasticModule, statistics: Statistics | None = None) -> SuperNet:
        """A SuperNet with a module's weights; ``statistics`` are those of the largest SubNet."""
        absorbed = self.with_weights(module.arrays())
        return absorbed if statistics is None else absorbed.with_weights(as_weights(absorbed.graph, statistics))

    def sort_channels(self) -> SuperNet:
        """Permutes coupled channels by importance, the most important first; the largest SubNet stays the same."""
        weights, orders = sort_channels(self.elastic)
        sorting = {atom.name: order.tolist() for atom, order in orders.items()}
        result = replace(self.with_weights(weights), sorting=sorting)
        if self.elastic.moments is None:
            return result
        return result.with_moments(self.elastic.moments.sorted(self.elastic.readers.values(), self.propagation, orders))

    def rotated(self) -> SuperNet:
        """The same SuperNet, with linear streams in the coordinates that readers need (``execution/rotation.py``).

        Moments say what readers need. The largest SubNet stays, up to rounding; channels are not sorted yet.
        """
        turned = bases(self.elastic)
        return replace(self, elastic=rotate(self.elastic, turned), rotations=turned)

    def sorted_as(self, other: SuperNet) -> SuperNet:
        """The same SuperNet with its channels in the coordinates and the order of another one.

        Moments are kept only where the channels are there already.
        """
        changed = {
            name: other.rotations.get(name, one) @ np.linalg.inv(self.rotations.get(name, one))
            for name, one in ((name, np.eye(len(basis))) for name, basis in (self.rotations | other.rotations).items())
            if not np.array_equal(self.rotations.get(name, one), other.rotations.get(name, one))
        }
        if self.sorting == other.sorting and not changed:
            return self
        given = {a: np.argsort(self.sorting[a.name]) for a in self.elastic.architecture.rules if a.name in self.sorting}
        plain = self.with_moments(None).with_weights(permuted(self.elastic, given))
        turned = rotate(plain.elastic, changed)
        orders = {a: np.array(other.sorting[a.name]) for a in turned.architecture.rules if a.name in other.sorting}
        return replace(plain.with_weights(permuted(turned, orders)), sorting=other.sorting, rotations=other.rotations)

    def with_moments(self, moments: Moments | None) -> SuperNet:
        """The same SuperNet whose slices follow from moments in closed form (``ir/moments.py``); None: they do not."""
        return replace(self, elastic=replace(self.elastic, moments=moments))

    def recalibrated(self, share: float) -> SuperNet:
        """The same SuperNet, whose SubNets take this share of their statistics of BatchNorm from recalibration."""
        return replace(self, elastic=replace(self.elastic, recalibrated=share))

    # Operators and metrics.

    def places(self, fusion: FusionRules) -> tuple[Place, ...]:
        """Every fused operator of the network with all features that the operator can have."""
        if fusion not in self._places:
            self._places[fusion] = find_places(self.elastic, fusion)
        return self._places[fusion]

    @cached_property
    def _places(self) -> dict[FusionRules, tuple[Place, ...]]:
        return {}

    def operators(self, subnet: SubNet | None = None, fusion: FusionRules = UNFUSED) -> tuple[OperatorFeature, ...]:
        """The unique fused operators of the whole space, or of one SubNet."""
        features: dict[OperatorFeature, None] = {}
        if subnet is not None:
            self._own(subnet)
        for place in self.places(fusion):
            active = place.operators if subnet is None else (place.feature(subnet),)
            features.update(dict.fromkeys(feature for feature in active if feature is not None))
        return tuple(features)

    def sequence(self, subnet: SubNet, fusion: FusionRules) -> tuple[PlacedOperator, ...]:
        """The fused operators of a SubNet in topological order, with the tensors that each reads and writes."""
        return operator_sequence(self.elastic, self.places(fusion), fusion, self._own(subnet))

    def latency(self, latencies: Mapping[str, float], fusion: FusionRules, crossing: Crossing | None = None) -> Metric:
        """The LUT as a metric in milliseconds.

        Args:
            latencies: feature id to milliseconds.
            fusion: the rules of the runtime.
            crossing: what an edge between operators of two settings costs (``metrics/edges.py``); None for nothing.

        Raises:
            GraphError: the LUT lacks an operator.
        """
        places = self.places(fusion)
        metric = sums.latency(self.space, places, latencies)
        if crossing is None:
            return metric
        edges = find_edges(self.elastic, places, fusion)
        return replace(metric, terms=(*metric.terms, *(edge.term(self.elastic, crossing) for edge in edges)))

    def latency_error(self, standard_errors: Mapping[str, float], fusion: FusionRules) -> LatencyError:
        """Standard error of predicted latencies in ms, from the LUT's standard errors (ms, by feature id).

        Raises:
            GraphError: the LUT lacks an operator.
        """
        return sums.latency_error(self.space, self.places(fusion), standard_errors)

    def energy(self, energies: Mapping[str, float], fusion: FusionRules) -> Metric:
        """Energy above idle in millijoules; ``energies`` maps feature ids to millijoules.

        Raises:
            GraphError: the LUT lacks the energy of an operator.
        """
        return sums.energy(self.space, self.places(fusion), energies)

    def peak_memory(
        self,
        fusion: FusionRules = UNFUSED,
        *,
        resident: Mapping[str, float] | None = None,
        workspace: Mapping[str, float] | None = None,
        baseline: float = 0.0,
        width: int = 4,
    ) -> PeakMemory:
        """Memory of one inference in MiB: resident weights, plus the largest sum of live activations and workspace.

        Args:
            fusion: the rules of the runtime.
            resident: feature id to MiB of weights as the runtime holds them (the LUT's ``resident_weight_mb``); a
                feature that is absent counts with the plain size of its weights.
            workspace: feature id to MiB of scratch memory (the LUT's ``workspace_mb``); a feature that is absent has
                none.
            baseline: MiB that a process of the runtime takes whatever it runs (``profiling.measure_baseline``).
            width: bytes of a number: 4 in single precision, 2 in half.
        """
        return peak_memory(
            self.elastic,
            self.places(fusion),
            fusion,
            resident=resident or {},
            workspace=workspace or {},
            baseline=baseline,
            width=width,
        )

    def macs(self) -> Metric:
        """Multiply-accumulate operations, in millions."""
        return sums.macs(self.space, self.places(UNFUSED))

    def elastic_share(self) -> ElasticShare:
        """The share of the MACs that is in operators which some SubNet resizes or leaves out."""
        return elastic_share(self.macs())

    def parameters(self) -> Metric:
        """Weights without statistics and scalars, in millions."""
        return sums.parameters(self.elastic)

    # Files.

    def save(self, path: str | Path) -> None:
        """Writes graph, weights, space, sorting and moments into one file (``torch.load(weights_only=True)`` reads it).

        Raises:
            GraphError: there is no such folder.
        """
        rotations = {name: torch.from_numpy(basis.copy()) for name, basis in self.rotations.items()}
        slices: dict[str, Any] = {"recalibrated": self.elastic.recalibrated, "rotations": rotations}
        if self.elastic.moments is not None:
            slices["moments"] = self.elastic.moments.describe()
        storage.write(Path(path), self.graph, self.space_config, self.sorting, slices)

    @classmethod
    def load(cls, path: str | Path) -> SuperNet:
        """Reads what ``save`` wrote.

        Raises:
            GraphError: the file is missing, damaged or of another version.
        """
        graph, space, sorting, slices = storage.read(Path(path))
        moments = Moments.restore(slices["moments"]) if "moments" in slices else None
        net = cls.of(graph, space, sorting).with_moments(moments).recalibrated(slices.get("recalibrated", 1.0))
        return replace(net, rotations={name: basis.numpy() for name, basis in slices.get("rotations", {}).items()})


def load_supernet(path: str | Path) -> SuperNet:
    """Reads a SuperNet that ``SuperNet.save`` wrote; ``autotailor.load``."""
    return SuperNet.load(path)
