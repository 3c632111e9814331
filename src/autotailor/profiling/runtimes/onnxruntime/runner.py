"""The ONNX Runtime backend of ``runner/loop.py``: runs programs whose text is an ONNX model in ONNX's own syntax.

The text declares weights by shape only. They are drawn here, so that large weights need not travel. Each run length has
its own session, on the part of the model that the length's output needs. The elimination of common subexpressions is
switched off, because it would merge copies without weights, which all compute the same.
"""

from __future__ import annotations

import functools
import json
import math
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
from onnx import numpy_helper

LEVELS = {
    "none": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
KEEP = ["CommonSubexpressionElimination"]


class LoadedProgram:
    """A program that is ready to run (``Loaded`` of the loop)."""

    def __init__(self, program: dict[str, Any], settings: dict[str, Any]) -> None:
        options = session_options(settings)
        outputs = [program["short"], program["long"]] if program["short"] else [program["long"]]
        self.lengths = len(outputs)
        if program["param"]:
            models = [read_model(program["param"], output).SerializeToString() for output in outputs]
        else:
            models = [program["param_path"]]
        self.sessions = [open_session(model, options, KEEP if program["param"] else None) for model in models]
        self.steps: list[str] = program.get("steps", [])
        if self.steps:
            self.folder = tempfile.TemporaryDirectory(prefix="kernels-")
            self.walking = walking_session(models[-1], settings, Path(self.folder.name))

    @functools.cached_property
    def feeds(self) -> list[dict[str, Any]]:
        """Inputs of each session, made when they are first needed, so that they do not count as memory of loading."""
        rng = np.random.default_rng(0)
        shapes = {given.name: given.shape for given in self.sessions[-1].get_inputs()}
        values = {name: rng.random(shape, dtype=np.float32) for name, shape in shapes.items()}
        return [{given.name: values[given.name] for given in s.get_inputs()} for s in self.sessions]

    def run(self, which: int) -> int:
        """Runs once; returns nanoseconds."""
        session, feed = self.sessions[which], self.feeds[which]
        start = time.perf_counter_ns()
        session.run(None, feed)
        return time.perf_counter_ns() - start

    def walk(self) -> None:
        """Runs once while the profiler records each kernel. The first such run only warms up."""
        self.walking.run(None, self.feeds[-1])

    def walks(self) -> list[list[list[int]]]:
        """Nanoseconds of each kernel of each step of each profiled run except the first."""
        with self.folder:
            events = json.loads(Path(self.walking.end_profiling()).read_text())
        return kernel_times(events, self.steps)[1:]

    def workspace_mb(self, held_mb: Callable[[], float]) -> float:
        """NaN: scratch memory and activations come from one arena and cannot be told apart."""
        return math.nan


load = LoadedProgram


def clear() -> None:
    """Does nothing, because each session frees its own arena."""


def session_options(settings: dict[str, Any]) -> Any:
    """ONNX Runtime's session options, from the settings of a manifest."""
    further = dict(settings["options"])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = settings["threads"], 1
    options.graph_optimization_level = LEVELS[further.pop("graph_optimization_level")]
    options.log_severity_level = 3
    for name, value in further.items():
        options.add_session_config_entry(name, str(value))
    return options


def walking_session(model: bytes | str, settings: dict[str, Any], folder: Path) -> Any:
    """A session that writes how long its kernels take into a file in ``folder``.

    The folder must be empty: the file is named after the time only, and two sessions could choose the same name.
    """
    options = session_options(settings)
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "kernels")
    return open_session(model, options, KEEP)


def kernel_times(events: list[dict[str, Any]], steps: list[str]) -> list[list[list[int]]]:
    """Nanoseconds of each kernel of each step in each profiled run.

    A kernel without a step changes a layout. It counts to the operator that reads its output, which is that of the next
    kernel with a step.
    """
    numbers = {step: i for i, step in enumerate(steps)}
    runs, run, waiting = list[list[list[int]]](), [list[int]() for _ in steps], list[int]()
    for event in sorted(events, key=lambda event: event["ts"] + event["dur"]):
        name = event["name"]
        if name == "model_run":
            run[-1] += waiting
            runs.append(run)
            run, waiting = [[] for _ in steps], []
        elif event["cat"] == "Node" and name.endswith("_kernel_time"):
            waiting.append(1000 * event["dur"])
            step = re.search(r"\bs\d+(?=\.)", name)
            if step:
                run[numbers[step[0]]] += waiting
                waiting = []
    return runs


def open_session(model: bytes | str, options: Any, disabled: list[str] | None = None) -> Any:
    """A session on the processor."""
    return onnxruntime.InferenceSession(
        model, options, providers=["CPUExecutionProvider"], disabled_optimizers=disabled
    )


def read_model(text: str, output: str) -> onnx.ModelProto:
    """The part of a model that an output needs, or several, between which blanks stand. Declared weights are drawn."""
    model = onnx.parser.parse_model(text)
    graph = model.graph
    asked = set(output.split())
    needed = set(asked)
    nodes = [node for node in reversed(graph.node) if needs(node, needed)]
    drawn = [declared for declared in graph.value_info if declared.name in needed]
    for field, kept in {
        "node": nodes[::-1],
        "input": [given for given in graph.input if given.name in needed],
        "output": [result for result in graph.output if result.name in asked],
        "initializer": [constant for constant in graph.initializer if constant.name in needed],
        "value_info": [],
    }.items():
        graph.ClearField(field)
        getattr(graph, field).extend(kept)
    rng = np.random.default_rng(0)
    for declared in drawn:
        shape = [axis.dim_value for axis in declared.type.tensor_type.shape.dim]
        graph.initializer.append(numpy_helper.from_array(weight(rng, shape), declared.name))
    return model


def needs(node: onnx.NodeProto, needed: set[str]) -> bool:
    """Whether a node computes a needed tensor; if so, the node's inputs are added to ``needed``."""
    if needed.isdisjoint(node.output):
        return False
    needed.update(node.input)
    return True


def weight(rng: np.random.Generator, shape: list[int]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Draws a weight: kernels of gain 1/2; vectors around 1 and positive, because some of them are variances.

    With such weights activations neither grow nor vanish. Growing activations would drive a softmax to 0 and 1, and
    numbers that are nearly 0 (denormal) are slow to compute with.
    """
    if len(shape) < 2:
        return np.asarray(rng.uniform(0.5, 1.5, shape), dtype=np.float32)
    fan = math.prod(shape[1:]) if len(shape) > 2 else shape[0]
    return (rng.standard_normal(shape, dtype=np.float32) / math.sqrt(fan) / 2).astype(np.float32)
