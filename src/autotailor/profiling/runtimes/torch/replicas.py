"""Replicas for PyTorch: the traced calls of an operator, which the runner repeats with R sets of weights."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np
import torch

from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.feature import OperatorFeature, Shape
from autotailor.ir.graph import Graph
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.copies import copies
from autotailor.profiling.runtimes.feature_nodes import feature_nodes
from autotailor.profiling.runtimes.torch.tracing import Trace, trace


class FeatureModule(GraphModule):
    """A graph of one fused operator, which may read several activations."""

    def __init__(self, feature: OperatorFeature) -> None:
        self.reads = tuple(f"in{i}" for i in range(len(feature.inputs)))
        made = feature_nodes(feature, self.reads, "c")
        others = dict(zip(self.reads[1:], feature.inputs[1:], strict=True))  # weights, because a graph has one input
        weights = {name: np.ones(shape, dtype=np.float32) for name, shape in (made.weights | others).items()}
        super().__init__(Graph(feature.kind, made.nodes, "in0", (made.output,), {"in0": feature.inputs[0]}, weights))
        for name in others:
            del self.weight_names[name]

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """The operator's (first) output."""
        values = dict(zip(self.reads, inputs, strict=True))
        for node in self.schedule.nodes:
            result = self._run(node, values)
            values.update(zip(node.outputs, (result,) if len(node.outputs) == 1 else result, strict=False))
        return values[self.schedule.outputs[0]]


def replica_program(feature: OperatorFeature) -> Program:
    """The replica program of a fused operator."""
    module = FeatureModule(feature).eval()
    traced = trace(module, [torch.rand(shape) for shape in feature.inputs])
    weight_mb = 4 * sum(math.prod(shape) for shape in feature.weights) / 2**20
    short, long = copies(feature, weight_mb)
    return Program(
        key=feature.id,
        param=written(traced, feature.inputs),
        inputs=tuple(shape[1:] for shape in feature.inputs),
        long="long",
        short="short",
        copies=(short, long),
        memory_mb=long * weight_mb,
    )


def written(traced: Trace, shapes: Sequence[Shape]) -> str:
    """A trace and the shapes of its inputs, as the runner reads them."""
    return json.dumps({**traced.to_json(), "shapes": shapes})


def nothing() -> str:
    """A program without calls, whose output is its input."""
    return written(Trace(("in0",), output="in0"), ((1, 4),))
