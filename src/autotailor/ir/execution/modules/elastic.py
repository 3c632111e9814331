"""A SuperNet as one PyTorch module on shared weights, whose operators slice the weights by the active architecture.

Normalisation uses the statistics of the batch (training), uses those of the active SubNet (evaluation), or collects
statistics (recalibration).
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from autotailor.ir.dimensions.dimension import Sizes
from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.errors import GraphError
from autotailor.ir.execution.active_weights import plan_active
from autotailor.ir.execution.kernels import Kernels
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.execution.modules.partial_gradients import PartialGradients
from autotailor.ir.execution.modules.slices import SliceGradient, Slices
from autotailor.ir.execution.modules.statistics import NORMALISATION, Collector, Statistics, unbias
from autotailor.ir.execution.schedule import PreparedSubNet
from autotailor.ir.execution.slicing import specialise
from autotailor.ir.execution.weight_plan import take_tensor
from autotailor.ir.graph import Node
from autotailor.ir.operators.pointwise.normalization import EPSILON
from autotailor.ir.operators.rule import Tensor, rules
from autotailor.ir.space.subnet import SubNet, largest


class ElasticModule(GraphModule):
    """A SuperNet as one module on shared weights; ``activate`` says which SubNet ``forward`` runs.

    Args:
        elastic: the network, whose weights are copied.
        logits: leave out the final activation, where there is one.

    Attributes:
        partial_gradients: those that ``add_gradients`` has added up since ``zero_grad``.
    """

    def __init__(self, elastic: ElasticGraph, logits: bool = False) -> None:
        super().__init__(elastic.graph, logits)
        self._kernels = Kernels(elastic.original)
        self.elastic = elastic
        self.statistics: Statistics | None = None
        self._collector: Collector | None = None
        self._stored = False
        self._slices: Slices | None = None
        self.partial_gradients = PartialGradients()
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
        return PreparedSubNet(subnet, sizes, self._schedule(nodes, tuple(map(kept.tensor, self._head.outputs))))

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
        replica = copy.copy(self)
        replica.partial_gradients = PartialGradients()
        return replica.look_at(self).activate(self.active)

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
            plan = plans[name] = plan_active(self.elastic, name, sizes)
        whole = super().weight(name)
        return take_tensor(whole, plan) if self._slices is None else self._slices.take(name, whole, plan)

    def _read(self, node: Node) -> tuple[str, ...]:
        """In training BatchNorm does without its stored statistics, which are therefore not sliced."""
        unused = node.kind == NORMALISATION and self.training and self._collector is None
        return (*node.inputs[:3], "", "") if unused else node.inputs

    @contextmanager
    def slices(self) -> Iterator[Slices]:
        """Within this context forward passes compute with slices that have gradients of their own (``slices.py``).

        The parameters get no gradients; ``add_gradients`` adds them to ``partial_gradients``. One SubNet is active
        within the context.
        """
        self._slices = Slices()
        try:
            yield self._slices
        finally:
            self._slices = None

    def add_gradients(self, gradients: Iterable[SliceGradient]) -> None:
        """Adds gradients of slices to ``partial_gradients``."""
        for gradient in gradients:
            self.partial_gradients.add(super().weight(gradient.weight), gradient.plan, gradient.value)

    def zero_grad(self, set_to_none: bool = True) -> None:
        super().zero_grad(set_to_none)
        self.partial_gradients.clear()

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

    def fold(self, keep: Collection[str] = ()) -> None:
        """Nothing is folded: slices have statistics of their own, and may collect them."""

    def normalise(self, node: Node, arguments: list[Any]) -> Tensor:
        x, gain, shift, mean, variance = arguments
        epsilon = node.get("epsilon", EPSILON)
        if self._collector is not None:
            axes = [0, *range(2, x.ndim)]
            batch_variance, batch_mean = variance_and_mean(x, axes)
            if self._stored:
                self._collector.add(node.name, batch_mean, batch_variance * unbias(x))
            else:
                share = self.elastic.recalibrated
                self._collector.add(
                    node.name,
                    torch.lerp(mean, batch_mean, share),
                    torch.lerp(variance, batch_variance * unbias(x), share),
                )
                mean, variance = torch.lerp(mean, batch_mean, share), torch.lerp(variance, batch_variance, share)
        elif self.training:
            return nn.functional.batch_norm(x, None, None, gain, shift, True, 0.0, epsilon)
        elif self.statistics is not None:
            mean, variance = self.statistics[node.name]
        return nn.functional.batch_norm(x, mean, variance, gain, shift, False, 0.0, epsilon)


def variance_and_mean(x: Tensor, axes: list[int]) -> tuple[Tensor, Tensor]:
    """``torch.var_mean`` of all of a channel's values, in two passes: on a processor five times as fast."""
    mean = x.mean(axes, keepdim=True)
    return (x - mean).square_().mean(axes), mean.flatten()


def _alias(parameter: nn.Parameter) -> nn.Parameter:
    """Another parameter on the same memory."""
    return nn.Parameter(parameter.detach(), parameter.requires_grad)
