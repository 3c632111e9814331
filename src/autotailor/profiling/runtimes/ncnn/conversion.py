"""Operators that no layer is written for, converted by pnnx: what it makes of one is timed as one piece.

A call of pnnx takes seconds, so that many operators share one, side by side in one ONNX graph::

    in0 -> BatchNormalization -> operator 0 -> out0
    in1 -> BatchNormalization -> operator 1 -> out1

BatchNormalization tells pnnx which axis is the batch. It is left out of the layers again. The layers must compute, with
random weights, what onnxruntime computes for the same graph. What came out is kept in the user's cache folder.
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
import os
import shlex
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import numpy_helper

from autotailor.artifacts import atomic
from autotailor.ir.errors import AutoTailorError
from autotailor.ir.feature import OperatorFeature, Shape
from autotailor.ir.graph import Node
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.runtimes.ncnn.layers.layer import Fragment, Layer, Params, Step, Value, ncnn_shape
from autotailor.profiling.runtimes.ncnn.pnnx import run_pnnx
from autotailor.profiling.runtimes.ncnn.trial import TrialNet, run_trials
from autotailor.profiling.runtimes.onnxruntime.replicas import Model

logger = logging.getLogger(__name__)

TOGETHER = 32
"""Operators of one call."""
TOLERANCE = 1e-3
"""Largest error, relative to the largest value of the output."""
MOST_SAID = 300
"""Characters of an error of pnnx, ncnn or onnxruntime that are repeated."""
VERSION = 1
"""Of the files in the cache."""

Outcome = Fragment | str
"""The layers of an operator, or why there are none."""


def convert_operators(features: Iterable[OperatorFeature]) -> dict[str, Outcome]:
    """What pnnx makes of operators, by their ids; from the cache where it was asked before."""
    found: dict[str, Outcome] = {}
    left = []
    for feature in features:
        outcome = _strange(feature) or _kept(feature)
        if outcome is None:
            left.append(feature)
        else:
            found[feature.id] = outcome
    for begin in range(0, len(left), TOGETHER):
        some = left[begin : begin + TOGETHER]
        logger.info("operators that pnnx converts: %d of %d ...", begin + len(some), len(left))
        made = _converted(some)
        for feature in some:
            _keep(feature, made[feature.id])
        found |= made
    return found


def _converted(features: Sequence[OperatorFeature]) -> dict[str, Outcome]:
    """Converts operators together; where that fails, those that it fails for are found by halving."""
    with tempfile.TemporaryDirectory(prefix="autotailor.pnnx.") as folder:
        try:
            return _Batch(features, Path(folder)).outcomes()
        except Exception as error:  # errors of onnxruntime have no class in common
            if len(features) == 1:
                return {features[0].id: " ".join(str(error).split())[:MOST_SAID]}
    half = len(features) // 2
    return _converted(features[:half]) | _converted(features[half:])


def _strange(feature: OperatorFeature) -> str:
    """Why an operator need not be tried; empty where it may."""
    if not onnx.defs.has(feature.kind):
        return f"{feature.kind} is no operator of ONNX"
    try:
        for shape in (*feature.inputs, *feature.outputs):
            ncnn_shape(shape)
    except AutoTailorError as error:
        return str(error)
    return "" if feature.inputs else "it reads nothing"


class _Batch:
    """Some operators in one graph.

    Attributes:
        shapes: of the graph's inputs.
        writes: of each operator, the graph's outputs by their numbers.
    """

    def __init__(self, features: Sequence[OperatorFeature], folder: Path) -> None:
        self.features, self.folder = features, folder
        self.shapes: list[Shape] = []
        self.writes: list[list[int]] = []
        self.first_inputs: list[int] = []
        self.model = Model()
        self.weights: dict[str, Shape] = {}
        self.outputs: list[str] = []
        for number, feature in enumerate(features):
            self._add(feature, f"f{number}")

    def _add(self, feature: OperatorFeature, name: str) -> None:
        """Adds an operator behind a BatchNormalization of each of its inputs."""
        self.first_inputs.append(len(self.shapes))
        reads = [self._input(shape) for shape in feature.inputs]
        made = self.model.computes(feature, reads, name)
        self.weights |= made.weights
        ends = made.nodes[-1].outputs if len(feature.outputs) > 1 else (made.output,)
        for end, shape in zip(ends, feature.outputs, strict=True):
            self.model.returns(end, shape)
        self.writes.append(list(range(len(self.outputs), len(self.outputs) + len(ends))))
        self.outputs += ends

    def _input(self, shape: Shape) -> str:
        name = f"in{len(self.shapes)}"
        self.model.reads(name, shape)
        self.shapes.append(shape)
        statistics = [f"{name}.{each}" for each in ("gain", "shift", "mean", "variance")]
        for each in statistics:
            self.weights[each] = (shape[1],)
            self.model.declares(each, (shape[1],))
        self.model.add(Node(f"{name}.norm", "BatchNormalization", (name, *statistics), (f"{name}.normed",)))
        return f"{name}.normed"

    def outcomes(self) -> dict[str, Outcome]:
        """The layers of each operator.

        Raises:
            ProfilingError: pnnx or ncnn fails for the whole graph.
        """
        rng = np.random.default_rng(0)
        path, param, weights = (self.folder / name for name in ("model.onnx", "model.param", "model.bin"))
        proto = onnx.parser.parse_model(self.model.text())
        values = ((name, rng.uniform(0.2, 1.0, shape).astype(np.float32)) for name, shape in self.weights.items())
        proto.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in values)
        onnx.save(proto, path)
        wanted = self._expected(path, rng)
        run_pnnx(path, param, weights)
        text = param.read_text(encoding="utf-8")
        inputs = tuple(str(self._file(f"in{i}")) for i in range(len(self.shapes)))
        names = tuple(f"out{i}" for i in range(len(self.outputs)))
        (trial,) = run_trials([TrialNet(text, str(weights), inputs, names, str(self.folder))])
        if trial.failure:
            raise ProfilingError(trial.failure)
        layers = [_ParamLine.read(line) for line in text.splitlines()[2:]]
        return {
            feature.id: self._outcome(number, layers, wanted, trial.shapes)
            for number, feature in enumerate(self.features)
        }

    def _file(self, blob: str) -> Path:
        """Where the values of a blob are."""
        return self.folder / f"{blob}.npy"

    def _expected(self, path: Path, rng: np.random.Generator) -> list[npt.NDArray[np.float32]]:
        """What onnxruntime computes for random inputs, which are left in files without the batch."""
        inputs = {f"in{i}": rng.uniform(0.2, 1.0, shape).astype(np.float32) for i, shape in enumerate(self.shapes)}
        for name, value in inputs.items():
            np.save(self._file(name), value[0])
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return list(session.run(self.outputs, inputs))

    def _outcome(
        self,
        number: int,
        layers: Sequence[_ParamLine],
        wanted: Sequence[npt.NDArray[np.float32]],
        shapes: Mapping[str, Shape],
    ) -> Outcome:
        """The layers of one operator, where they compute the right numbers."""
        for i in self.writes[number]:
            found = np.load(self._file(f"out{i}"))
            if found.size != wanted[i].size:
                return f"pnnx makes a shape of {list(found.shape)} of its output {list(wanted[i].shape)}"
            error = float(np.abs(found.ravel() - wanted[i].ravel()).max() / max(np.abs(wanted[i]).max(), 1e-6))
            if not error <= TOLERANCE:
                return f"the layers that pnnx writes for it compute other numbers (error {error:.2g})"
        return self._piece(number, layers, shapes)

    def _piece(self, number: int, layers: Sequence[_ParamLine], shapes: Mapping[str, Shape]) -> Outcome:
        """The layers between the operator's normalised inputs and its outputs."""
        producers = {blob: layer for layer in layers for blob in layer.writes}
        names = {f"out{i}": f"o{place}" for place, i in enumerate(self.writes[number])}
        first, count = self.first_inputs[number], len(self.features[number].inputs)
        inputs = {f"in{first + place}": f"i{place}" for place in range(count)}
        needed: set[str] = set()
        stack = list(names)
        while stack:
            layer = producers[stack.pop()]
            if layer.type == "BatchNorm" and layer.reads[0] in inputs:
                names.setdefault(layer.writes[0], inputs[layer.reads[0]])
            elif layer.type == "Input":
                return "pnnx merges it with what stands before it"
            elif layer.place not in needed:
                needed.add(layer.place)
                stack += layer.reads
        if not needed:
            return (Step(Layer("Noop", in_place=True), ("i0",), ("o0",), (ncnn_shape(self.shapes[first]),)),)
        chosen = [layer for layer in layers if layer.place in needed]
        for blob in (blob for layer in chosen for blob in layer.writes):
            names.setdefault(blob, f"t{len(names)}")
        return tuple(layer.step(names, shapes) for layer in chosen)


@dataclass(frozen=True)
class _ParamLine:
    """One line of a `.param`."""

    type: str
    place: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    params: Params

    @classmethod
    def read(cls, line: str) -> _ParamLine:
        """Reads the words of a line; the layer's name tells where it stands."""
        kind, name, reads, writes, *words = shlex.split(line)
        ins, outs = words[: int(reads)], words[int(reads) : int(reads) + int(writes)]
        return cls(kind, name, tuple(ins), tuple(outs), tuple(_parameter(w) for w in words[int(reads) + int(writes) :]))

    def step(self, names: Mapping[str, str], shapes: Mapping[str, Shape]) -> Step:
        """The line as a step of a fragment."""
        reads = tuple(names[blob] for blob in self.reads)
        read_shapes = tuple(shapes[blob] for blob in self.reads)
        return Step(Layer(self.type, self.params), reads, tuple(names[blob] for blob in self.writes), read_shapes)


def _parameter(word: str) -> tuple[int, Value]:
    """A parameter's id and value; arrays without their length."""
    key, _, text = word.partition("=")
    number = int(key)
    if number >= 0:
        return number, _value(text)
    values = [_value(each) for each in text.split(",")[1:]]
    return -23300 - number, tuple(values)  # type: ignore[return-value]  # pnnx writes arrays of one type


def _value(text: str) -> int | float | str:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def _cache(feature: OperatorFeature) -> Path:
    """The file of an operator: another pnnx or ncnn may make something else of it."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    versions = "-".join(f"{name}{importlib.metadata.version(name)}" for name in ("pnnx", "ncnn", "onnxruntime"))
    return home / "autotailor" / "ncnn_layers" / f"{VERSION}-{versions}" / f"{feature.id}.json"


def _kept(feature: OperatorFeature) -> Outcome | None:
    """What was found before; None where nothing was, or the file is damaged."""
    try:
        found = json.loads(_cache(feature).read_text(encoding="utf-8"))
        return found["refused"] or tuple(_read_step(step) for step in found["steps"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read_step(step: Mapping[str, Any]) -> Step:
    params = tuple((key, tuple(value) if isinstance(value, list) else value) for key, value in step["layer"]["params"])
    layer = Layer(step["layer"]["type"], params, step["layer"]["in_place"])
    shapes = tuple(tuple(shape) for shape in step["shapes"])
    return Step(layer, tuple(step["reads"]), tuple(step["writes"]), shapes)


def _keep(feature: OperatorFeature, outcome: Outcome) -> None:
    """Notes an outcome for the next time; a folder that cannot be written costs that only."""
    refused = outcome if isinstance(outcome, str) else ""
    steps = [] if isinstance(outcome, str) else [asdict(step) for step in outcome]
    try:
        with atomic(_cache(feature)) as path:
            path.write_text(json.dumps({"refused": refused, "steps": steps}), encoding="utf-8")
    except OSError as error:
        logger.debug("%s is not kept: %s", feature.id, error)
