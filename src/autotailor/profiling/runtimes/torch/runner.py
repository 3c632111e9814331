"""The PyTorch backend of ``runner/loop.py``: runs traced modules eagerly, on the processor or with CUDA.

This file needs PyTorch, NumPy and the standard library only, so that a board runs it with its own PyTorch. A program is
JSON (see ``tracing.py``). Its calls are made in order, and each result is freed after its last use. Replicas are the
same calls with other weights.
"""

from __future__ import annotations

import functools
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

Step = tuple[Callable[..., Any], list[Any], dict[str, Any], Any, list[str]]


class LoadedProgram:
    """A program that is ready to run (``Loaded`` of the loop)."""

    def __init__(self, program: dict[str, Any], settings: dict[str, Any]) -> None:
        self.device = prepare(settings)
        self.form = form(settings)
        traced = json.loads(program["param"] or Path(program["param_path"]).read_text())
        self.lengths = 2 if program["short"] else 1
        self.copies = program["copies"] if program["short"] else [1]
        self.output = traced["output"]
        self.returned = traced.get("returned", [self.output])
        self.steps = steps(traced)
        saved = torch.load(program["bin_path"], map_location="cpu") if program["bin_path"] else {}
        rng = torch.Generator().manual_seed(0)
        self.weights = [
            {name: self.placed(saved.get(name, draw(shape, rng))) for name, shape in traced["weights"].items()}
            for _ in range(self.copies[-1])
        ]
        self.shapes = dict(zip(traced["inputs"], traced["shapes"], strict=True))

    @functools.cached_property
    def inputs(self) -> dict[str, torch.Tensor]:
        """The inputs, made when they are first needed, so that they do not count as memory of loading."""
        rng = torch.Generator().manual_seed(1)
        return {name: self.placed(torch.rand(shape, generator=rng)) for name, shape in self.shapes.items()}

    def placed(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor on the device, in the number type and layout of the settings."""
        dtype, layout = self.form
        moved = tensor.to(self.device, dtype if tensor.is_floating_point() else None)
        return moved.contiguous(memory_format=layout) if moved.ndim == 4 else moved

    @torch.inference_mode()
    def run(self, which: int) -> int:
        """Runs all copies of a length once; returns nanoseconds until all launched kernels have finished."""
        self.synchronize()
        start = time.perf_counter_ns()
        for weights in self.weights[: self.copies[which]]:
            self.compute({**self.inputs, **weights})
        self.synchronize()
        return time.perf_counter_ns() - start

    def compute(self, values: dict[str, Any]) -> torch.Tensor:
        """Makes the calls of one copy; returns the output."""
        for function, arguments, keywords, target, done in self.steps:
            keys = {key: read(values, value) for key, value in keywords.items()}
            result = function(*[read(values, value) for value in arguments], **keys)
            if isinstance(target, str):
                values[target] = result
            else:
                values.update(zip(target, result, strict=True))
            for name in done:
                del values[name]
        output: torch.Tensor = values[self.output]
        return output

    def synchronize(self) -> None:
        """Waits until all launched kernels have finished."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def workspace_mb(self, held_mb: Callable[[], float]) -> float:
        """NaN: PyTorch does not distinguish scratch memory from activations."""
        return math.nan


load = LoadedProgram


def clear() -> None:
    """Frees the unused memory that CUDA's caching allocator holds."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def prepare(settings: dict[str, Any]) -> torch.device:
    """Sets the number of threads; returns the device of the settings."""
    torch.set_num_threads(settings["threads"])
    return torch.device(settings["options"]["device"])


def form(settings: dict[str, Any]) -> tuple[torch.dtype, torch.memory_format]:
    """Number type of tensors, and layout of images."""
    options = settings["options"]
    half, last = options["precision"] == "fp16", options["channels_last"]
    return torch.float16 if half else torch.float32, torch.channels_last if last else torch.contiguous_format


def steps(traced: dict[str, Any]) -> list[Step]:
    """The calls with their functions, each with the names of tensors that are not needed after it."""
    last: dict[str, int] = {}
    for position, (_, _, arguments, keywords) in enumerate(traced["calls"]):
        last.update(dict.fromkeys(names([arguments, list(keywords.values())]), position))
    ends: dict[int, list[str]] = {}
    for name, position in last.items():
        if (
            name not in traced.get("returned", [traced["output"]])
            and name not in traced["weights"]
            and name not in traced["inputs"]
        ):
            ends.setdefault(position, []).append(name)
    return [
        (find(function), arguments, keywords, target, ends.get(position, []))
        for position, (target, function, arguments, keywords) in enumerate(traced["calls"])
    ]


def find(name: str) -> Callable[..., Any]:
    """A function by its public name, for instance ``torch.nn.functional.relu``."""
    return functools.reduce(getattr, name.split(".")[1:], torch)  # type: ignore[return-value,arg-type]


def names(value: Any) -> list[str]:
    """Names of all tensors in an argument."""
    if isinstance(value, dict):
        return [value["tensor"]] if "tensor" in value else names(value.get("tuple"))
    return [name for part in value for name in names(part)] if isinstance(value, list) else []


def read(values: dict[str, Any], value: Any) -> Any:
    """An argument as the function takes it."""
    if isinstance(value, list):
        return [read(values, part) for part in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return values[content]
    if kind == "tuple":
        return tuple(read(values, part) for part in content)
    return slice(*content) if kind == "slice" else find(content)


def draw(shape: list[int], generator: torch.Generator) -> torch.Tensor:
    """Draws a weight: kernels around 0; vectors around 1 and positive, because some of them are variances."""
    if len(shape) < 2:
        return torch.rand(shape, generator=generator) + 0.5
    return torch.randn(shape, generator=generator) / math.sqrt(math.prod(shape[1:]))
