"""Records the calls that a PyTorch module makes, by the functions' public names; ``runner.py`` repeats these calls.

Example::

    {"inputs": ["in0"], "weights": {"w0": [8, 3, 3, 3]}, "output": "t1",
     "calls": [["t0", "torch.conv2d", [{"tensor": "in0"}, {"tensor": "w0"}, null, {"tuple": [2, 2]}], {}],
               ["t1", "torch.relu", [{"tensor": "t0"}], {}]]}
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode, resolve_name

from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.feature import OperatorFeature, Shape
from autotailor.ir.graph import Graph
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.copies import copies
from autotailor.profiling.runtimes.feature_nodes import feature_nodes


@dataclass
class Trace:
    """The recorded calls in order, and the tensors that they read.

    Attributes:
        inputs: names of activations.
        weights: constant tensors by name.
        calls: (names of results, function, arguments, keywords) for each call. An argument is a value of JSON's types,
            or an object whose one key names the value's kind: ``tensor`` (by name), ``tuple``, ``slice``, ``dtype``.
        output: name of the module's result, or of the last one of several.
        returned: names of several results; empty where there is one.
    """

    inputs: tuple[str, ...]
    weights: dict[str, torch.Tensor] = field(default_factory=dict)
    calls: list[list[Any]] = field(default_factory=list)
    output: str = ""
    returned: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The trace without the values of weights."""
        shapes = {name: list(tensor.shape) for name, tensor in self.weights.items()}
        returned = {"returned": self.returned} if self.returned else {}
        return {"inputs": self.inputs, "weights": shapes, "calls": self.calls, "output": self.output, **returned}


def trace(module: nn.Module, inputs: Sequence[torch.Tensor]) -> Trace:
    """Runs a module once and records its calls.

    Raises:
        ProfilingError: the module calls a function without a public name, or with arguments that JSON cannot hold.
    """
    tracer = _Tracer(inputs)
    with torch.inference_mode(), tracer:
        result = module(*inputs)
    names = tuple(map(tracer.name, result if isinstance(result, tuple) else (result,)))
    tracer.trace.output, tracer.trace.returned = names[-1], names if len(names) > 1 else ()
    return tracer.trace


class _Tracer(TorchFunctionMode):
    """Records the outermost calls that return tensors."""

    def __init__(self, inputs: Sequence[torch.Tensor]) -> None:
        super().__init__()
        names = tuple(f"in{i}" for i in range(len(inputs)))
        self.trace = Trace(names)
        self.names = {id(tensor): name for name, tensor in zip(names, inputs, strict=True)}
        self.alive: list[Any] = list(inputs)  # kept alive, so that no two tensors ever have the same id

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        results = result if isinstance(result, tuple | list) else (result,)
        if results and all(isinstance(value, torch.Tensor) for value in results):
            written = [self.written(value) for value in args]
            keywords = {key: self.written(value) for key, value in (kwargs or {}).items()}
            first = len(self.alive)
            self.alive += results
            names = [f"t{first + i}" for i in range(len(results))]
            self.names |= {id(value): name for value, name in zip(results, names, strict=True)}
            target = names[0] if isinstance(result, torch.Tensor) else names
            self.trace.calls.append([target, _function_name(func), written, keywords])
        return result

    def name(self, tensor: torch.Tensor) -> str:
        """The name of a tensor. A tensor that no call has returned is a weight."""
        if id(tensor) not in self.names:
            self.names[id(tensor)] = name = f"w{len(self.trace.weights)}"
            self.trace.weights[name] = tensor
            self.alive.append(tensor)
        return self.names[id(tensor)]

    def written(self, value: Any) -> Any:
        """An argument in JSON's types."""
        if isinstance(value, torch.Tensor):
            return {"tensor": self.name(value)}
        if isinstance(value, tuple):
            return {"tuple": [self.written(part) for part in value]}
        if isinstance(value, slice):
            return {"slice": [value.start, value.stop, value.step]}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value)}
        if isinstance(value, list):
            return [self.written(part) for part in value]
        if value is None or isinstance(value, bool | int | float | str):
            return value
        raise ProfilingError(f"a module cannot be traced: it passes {value!r}, expected tensors, numbers and texts")


def _function_name(func: Any) -> str:
    name = resolve_name(func)
    if name is None:
        raise ProfilingError(f"a module cannot be traced: {func!r} has no public name")
    return str(name)


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
