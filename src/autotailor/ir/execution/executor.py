"""Graphs as PyTorch modules (the paper's ``build``).

``GraphModule`` runs one graph. ``ElasticModule`` runs any SubNet of a SuperNet on shared weights: its operators slice
the weights by the active architecture. Normalisation uses the statistics of the batch (training), uses those of the
active SubNet (evaluation), or collects statistics (recalibration).
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from autotailor.ir.dimensions.dimension import Sizes
from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.errors import GraphError
from autotailor.ir.execution.bypass import bypass
from autotailor.ir.execution.head import Head, find_head
from autotailor.ir.execution.in_place import overwrite
from autotailor.ir.execution.kernels import Kernels, find_call
from autotailor.ir.execution.schedule import PreparedSubNet, Schedule
from autotailor.ir.execution.slices import SliceGradient, Slices
from autotailor.ir.execution.slicing import specialise
from autotailor.ir.execution.weight_plan import add_gradient, plan_weight, take_tensor
from autotailor.ir.graph import Graph, Node
from autotailor.ir.operators.pointwise.normalization import EPSILON
from autotailor.ir.operators.rule import Tensor, rules
from autotailor.ir.space.subnet import SubNet, largest

NORMALISATION = "BatchNormalization"
Statistics = Mapping[str, tuple[Tensor, Tensor]]


@dataclass
class Collector:
    """Running averages of batch means and variances, by normalisation node."""

    _sums: dict[str, tuple[Tensor, Tensor, int]] = field(default_factory=dict)

    def add(self, node: str, mean: Tensor, variance: Tensor) -> None:
        """Takes one batch's statistics in."""
        means, variances, count = self._sums.get(node, (torch.zeros_like(mean), torch.zeros_like(variance), 0))
        self._sums[node] = (means + mean, variances + variance, count + 1)

    def statistics(self) -> dict[str, tuple[Tensor, Tensor]]:
        """Averages over the batches seen: node name to (mean ``[c]``, variance ``[c]``)."""
        return {node: (means / n, variances / n) for node, (means, variances, n) in self._sums.items()}


class GraphModule(nn.Module):
    """One graph as a module; input ``[n, 3, r, r]``, output ``[n, classes]``.

    Trainable weights are parameters, other weights are buffers; ``weight_names`` maps names of weights in the graph to
    names of attributes.

    Args:
        graph: to be run.
        logits: leave out the final activation, where there is one.
    """

    def __init__(self, graph: Graph, logits: bool = False) -> None:
        super().__init__()
        self.graph = graph
        self._head = find_head(graph) if logits else Head(graph.output)
        self.weight_names: dict[str, str] = {}
        frozen = _untrainable(graph)
        for i, (name, weight) in enumerate(graph.weights.items()):
            attribute = f"w{i}_{''.join(c if c.isalnum() else '_' for c in name)}"
            self.weight_names[name] = attribute
            value = torch.from_numpy(np.array(weight))
            if name in frozen:
                self.register_buffer(attribute, value)
            else:
                self.register_parameter(attribute, nn.Parameter(value))
        self._bypassed = nn.ModuleDict()
        self._bypass_keys: dict[str, str] = {}
        for node in graph.nodes:
            if self._is_static(node):
                self._bypass_keys[node.name] = key = f"s{len(self._bypass_keys)}"
                self._bypassed[key] = bypass(graph, node)
        self._kernels = Kernels(graph)
        self.schedule = self._schedule(graph.nodes, self._head.logits)

    def _is_static(self, node: Node) -> bool:
        return find_call(node.kind) is None

    def _schedule(self, nodes: Iterable[Node], output: str) -> Schedule:
        """The schedule of some of the graph's nodes; a subgraph that has a function of its own is one node."""
        nodes = tuple(node for node in nodes if node.name not in self._head.nodes)
        return Schedule.of(self.graph, self._kernels.joined(nodes, keep=(output,)), output)

    def weight(self, name: str) -> Tensor:
        """The weight that operators compute with."""
        value: Tensor = getattr(self, self.weight_names[name])
        return value

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Copies of all weights as they are now, by the graph's names."""
        return {n: getattr(self, a).detach().cpu().numpy().copy() for n, a in self.weight_names.items()}

    def forward(self, x: Tensor) -> Tensor:
        values = {self.graph.input: x}
        self.advance(values, 0, len(self.schedule.nodes))
        return self.logits(values)

    def advance(self, values: dict[str, Tensor], start: int, stop: int, hold: Collection[str] = ()) -> None:
        """Runs the nodes between two positions of the schedule.

        Args:
            values: activations by name: those that are live at ``start``, and afterwards those that are live at
                ``stop``.
            start: position of the first node.
            stop: position behind the last node.
            hold: tensors that are not dropped behind the node that reads them last.
        """
        for position, node in enumerate(self.schedule.nodes[start:stop], start):
            result = self._run(node, values)
            if len(node.outputs) == 1:
                values[node.outputs[0]] = result
            else:
                values.update(zip(node.outputs, result, strict=False))
            for name in self.schedule.last.get(position, ()):
                if name not in hold:
                    values.pop(name, None)

    def logits(self, values: Mapping[str, Tensor]) -> Tensor:
        """What ``forward`` returns, from the activations behind the last node."""
        result = values[self.schedule.output]
        return result.flatten(1) if self._head.activation else result  # logits may be maps of one pixel

    def _run(self, node: Node, values: Mapping[str, Tensor]) -> Any:
        if node.name in self._bypass_keys:
            module = self._bypassed[self._bypass_keys[node.name]]
            return module(*(values[name] for name in dict.fromkeys(self.graph.activations(node))))
        arguments = [self._argument(name, values) for name in self._read(node)]
        if node.kind == NORMALISATION:
            return self.normalise(node, arguments)
        if self.training and node.name in self.schedule.overwritten:
            return overwrite(node, arguments, self.schedule.overwritten[node.name])
        call = find_call(node.kind)
        assert call is not None
        return call(node, arguments)

    def _read(self, node: Node) -> tuple[str, ...]:
        """The inputs that a node reads; an empty name is read as None."""
        return node.inputs

    def _argument(self, name: str, values: Mapping[str, Tensor]) -> Tensor | None:
        if not name:
            return None
        return self.weight(name) if name in self.weight_names else values[name]

    def normalise(self, node: Node, arguments: list[Any]) -> Tensor:
        """BatchNorm as PyTorch does it: running averages are updated in training."""
        x, gain, shift, mean, variance = arguments
        momentum = 1.0 - node.get("momentum", 0.9)
        return nn.functional.batch_norm(
            x, mean, variance, gain, shift, self.training, momentum, node.get("epsilon", EPSILON)
        )


def _untrainable(graph: Graph) -> set[str]:
    """Weights that training leaves alone: statistics, integers, scalars."""
    names = {name for name, w in graph.weights.items() if not np.issubdtype(w.dtype, np.floating) or w.size == 1}
    for node in graph.nodes:
        rule = rules.find(node.kind)
        if rule is None:
            names.update(name for name in node.inputs if name in graph.weights)
        else:
            names.update(node.inputs[i] for i in rule.statistics)
    return names


class ElasticModule(GraphModule):
    """A SuperNet as one module on shared weights; ``activate`` says which SubNet ``forward`` runs.

    Args:
        elastic: the network, whose weights are copied.
        logits: leave out the final activation, where there is one.
    """

    def __init__(self, elastic: ElasticGraph, logits: bool = False) -> None:
        super().__init__(elastic.graph, logits)
        self.elastic = elastic
        self.statistics: Statistics | None = None
        self._collector: Collector | None = None
        self._stored = False
        self._slices: Slices | None = None
        self.activate(largest(elastic.space))

    def activate(self, subnet: SubNet) -> ElasticModule:
        """Selects the SubNet to run; statistics of another SubNet are dropped.

        Raises:
            GraphError: slices of another SubNet are in use.
        """
        return self.use(self.prepare(subnet))

    def prepare(self, subnet: SubNet) -> PreparedSubNet:
        """What ``use`` needs to run a SubNet; the active SubNet stays the same."""
        sizes, kept = self.elastic.sizes(subnet), self.elastic.remainder(subnet)
        nodes = [self._follow(node, sizes) for node in kept.nodes]
        return PreparedSubNet(subnet, sizes, self._schedule(nodes, kept.tensor(self._head.logits)))

    def use(self, prepared: PreparedSubNet) -> ElasticModule:
        """``activate`` for a SubNet that this module or a replica of it has prepared."""
        if self._slices:
            raise GraphError(
                f"network {self.graph.name}: activate a SubNet before its forward pass, not between slices"
            )
        self._active, self.schedule, self.statistics = prepared, prepared.schedule, None
        return self

    def _follow(self, node: Node, sizes: Sizes) -> Node:
        """The node as its operator needs it: with attributes of the active shapes where it reads them."""
        rule = rules.find(node.kind)
        if rule is None or not rule.follows_shapes or self._is_static(node):
            return node
        return specialise(node, self.elastic.shapes((*node.inputs, *node.outputs), sizes))

    def replica(self) -> ElasticModule:
        """Another view of the same weights with an active SubNet of its own, for a thread of its own."""
        return copy.copy(self).look_at(self).activate(self.active)

    def look_at(self, other: ElasticModule) -> ElasticModule:
        """Takes on the weights of another view where they lie now, as parameters with gradients of their own.

        Threads that compute gradients must not share parameters: PyTorch locks a parameter while it waits for the
        interpreter, and another thread may hold the interpreter while it waits for the parameter.
        """
        self._parameters = {n: p if p is None else _alias(p) for n, p in other._parameters.items()}
        return self

    @property
    def active(self) -> SubNet:
        """The SubNet that ``forward`` runs."""
        return self._active.subnet

    def weight(self, name: str) -> Tensor:
        plans, sizes = self._active.plans, self._active.sizes
        plan = plans.get(name)
        if plan is None:
            plan = plans[name] = plan_weight(self.elastic.propagation.dimensions[name], sizes)
        whole = super().weight(name)
        return take_tensor(whole, plan) if self._slices is None else self._slices.take(name, whole, plan)

    def _read(self, node: Node) -> tuple[str, ...]:
        """In training BatchNorm does without its stored statistics, which are therefore not sliced."""
        unused = node.kind == NORMALISATION and self.training and self._collector is None
        return (*node.inputs[:3], "", "") if unused else node.inputs

    @contextmanager
    def slices(self) -> Iterator[Slices]:
        """Within this context forward passes compute with slices that have gradients of their own (``slices.py``).

        The parameters get gradients from ``add_gradients`` alone. One SubNet is active within the context.
        """
        self._slices = Slices()
        try:
            yield self._slices
        finally:
            self._slices = None

    def add_gradients(self, gradients: Iterable[SliceGradient]) -> None:
        """Adds gradients of slices to those of the parameters."""
        for gradient in gradients:
            parameter = super().weight(gradient.weight)
            if parameter.grad is None and not any(gradient.plan):
                parameter.grad = gradient.value
                continue
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            add_gradient(parameter.grad, gradient.plan, gradient.value)

    @contextmanager
    def collecting(self, stored: bool = False, collector: Collector | None = None) -> Iterator[Collector]:
        """Within this context forward passes collect statistics of the active SubNet, without gradients.

        Args:
            stored: whether BatchNorm computes with its stored statistics meanwhile, as in evaluation, instead of
                with those of the batch.
            collector: that takes the statistics; a new one where there is none.
        """
        self._collector, self._stored = collector or Collector(), stored
        try:
            with torch.no_grad():
                yield self._collector
        finally:
            self._collector = None

    def normalise(self, node: Node, arguments: list[Any]) -> Tensor:
        x, gain, shift, mean, variance = arguments
        epsilon = node.get("epsilon", EPSILON)
        if self._collector is not None:
            axes = [0, *range(2, x.ndim)]
            batch_variance, batch_mean = torch.var_mean(x, axes, unbiased=False)
            self._collector.add(node.name, batch_mean, batch_variance * _unbias(x))
            if not self._stored:
                mean, variance = batch_mean, batch_variance
        elif self.training:
            return nn.functional.batch_norm(x, None, None, gain, shift, True, 0.0, epsilon)
        elif self.statistics is not None:
            mean, variance = self.statistics[node.name]
        return nn.functional.batch_norm(x, mean, variance, gain, shift, False, 0.0, epsilon)


def _alias(parameter: nn.Parameter) -> nn.Parameter:
    """Another parameter on the same memory."""
    return nn.Parameter(parameter.detach(), parameter.requires_grad)


def _unbias(x: Tensor) -> float:
    """N / (n - 1) over the axes that BatchNorm averages: PyTorch stores unbiased variances."""
    count = x.numel() // x.shape[1]
    return count / max(1, count - 1)
