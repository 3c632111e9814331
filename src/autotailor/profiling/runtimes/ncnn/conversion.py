"""Converts operators for which no layers are written here with pnnx. An operator's layers are timed as one piece.

A call of pnnx takes seconds. So many operators share a call, side by side in one ONNX graph::

    in0 -> BatchNormalization -> operator 0 -> out0
    in1 -> BatchNormalization -> operator 1 -> out1

BatchNormalization tells pnnx which axis is the batch, and is left out of the layers again. With random weights, the
layers must compute what onnxruntime computes for the same graph. The user's cache folder keeps the outcome.
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

from autotailor.artifacts import write_text
from autotailor.ir.errors import AutoTailorError
from autotailor.ir.feature import OperatorFeature, Shape
from autotailor.ir.graph import Node
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.runtimes.base import MOST_SAID
from autotailor.profiling.runtimes.ncnn.layers.layer import Fragment, Layer, Params, Step, Value, ncnn_shape
from autotailor.profiling.runtimes.ncnn.pnnx import run_pnnx
from autotailor.profiling.runtimes.ncnn.trial import TrialNet, run_trials
from autotailor.profiling.runtimes.onnxruntime.replicas import Model
from autotailor.profiling.runtimes.stopped import StoppedError

logger = logging.getLogger(__name__)

TOGETHER = 32
"""Operators that share one call of pnnx."""
TOLERANCE = 1e-3
"""Largest error, relative to the largest value of the output."""
VERSION = 1
"""Version of the files in the cache."""

Outcome = Fragment | str
"""The layers of an operator, or the reason why there are none."""


def convert_operators(features: Iterable[OperatorFeature]) -> dict[str, Outcome]:
    """Layers that pnnx writes for operators, by the operators' ids; from the cache where it holds them.

    Raises:
        StoppedError: pnnx or ncnn was ended from outside, or files cannot be written (a full disk). Nothing is kept of
            the operators that it worked on.
    """
    outcomes: dict[str, Outcome] = {}
    left = []
    for feature in features:
        outcome = _strange(feature) or _kept(feature)
        if outcome is None:
            left.append(feature)
        else:
            outcomes[feature.id] = outcome
    for begin in range(0, len(left), TOGETHER):
        some = left[begin : begin + TOGETHER]
        logger.info("operators that pnnx converts: %d of %d ...", begin + len(some), len(left))
        made = _converted(some)
        for feature in some:
            _keep(feature, made[feature.id])
        outcomes |= made
    return outcomes


def _converted(features: Sequence[OperatorFeature]) -> dict[str, Outcome]:
    """Converts operators in one call. Where the call fails, each half is converted again, to find the culprits."""
    with tempfile.TemporaryDirectory(prefix="autotailor.pnnx.") as folder:
        try:
            return _Batch(features, Path(folder)).outcomes()
        except StoppedError:
            raise
        except (OSError, MemoryError) as error:  # the machine's fault: the cache must not blame the operators
            raise StoppedError(
                f"operators cannot be converted for ncnn ({error or 'no memory is left'}): free space in "
                f"{tempfile.gettempdir()}, or name another folder in TMPDIR, and run again"
            ) from error
        except Exception as error:  # errors of onnxruntime have no common class
            if len(features) == 1:
                return {features[0].id: " ".join(str(error).split())[:MOST_SAID]}
    half = len(features) // 2
    return _converted(features[:half]) | _converted(features[half:])


def _strange(feature: OperatorFeature) -> str:
    """Why pnnx cannot convert an operator in any case; empty where pnnx may be tried."""
    if not onnx.defs.has(feature.kind):
        return f"{feature.kind} is no operator of ONNX"
    try:
        for shape in (*feature.inputs, *feature.outputs):
            ncnn_shape(shape)
    except AutoTailorError as error:
        return str(error)
    return "" if feature.inputs else f"{feature.kind} reads nothing"


class _Batch:
    """Operators that are converted together, side by side in one graph.

    Attributes:
        shapes: shapes of the graph's inputs.
        writes: for each operator the numbers of the graph's outputs that it writes.
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
        expected = self._expected(path, rng)
        run_pnnx(path, param, weights)
        text = param.read_text(encoding="utf-8")
        inputs = tuple(str(self._file(f"in{i}")) for i in range(len(self.shapes)))
        names = tuple(f"out{i}" for i in range(len(self.outputs)))
        (trial,) = run_trials([TrialNet(text, str(weights), inputs, names, str(self.folder))])
        if trial.failure:
            raise ProfilingError(trial.failure)
        layers = [_ParamLine.read(line) for line in text.splitlines()[2:]]
        return {
            feature.id: self._outcome(number, layers, expected, trial.shapes)
            for number, feature in enumerate(self.features)
        }

    def _file(self, blob: str) -> Path:
        """The file with the values of a blob."""
        return self.folder / f"{blob}.npy"

    def _expected(self, path: Path, rng: np.random.Generator) -> list[npt.NDArray[np.float32]]:
        """What onnxruntime computes for random inputs; writes these inputs, without the batch, into files."""
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
        expected: Sequence[npt.NDArray[np.float32]],
        shapes: Mapping[str, Shape],
    ) -> Outcome:
        """The layers of one operator, or a reason where these do not compute the right numbers."""
        for i in self.writes[number]:
            output = np.load(self._file(f"out{i}"))
            if output.size != expected[i].size:
                return f"pnnx gives its output the shape {list(output.shape)} instead of {list(expected[i].shape)}"
            error = float(np.abs(output.ravel() - expected[i].ravel()).max() / max(np.abs(expected[i]).max(), 1e-6))
            if not error <= TOLERANCE:
                return f"the layers that pnnx writes compute other numbers than onnxruntime (error {error:.2g})"
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
                return "pnnx merges the operator with the one before it"
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
    """One line of a ``.param``."""

    type: str
    place: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    params: Params

    @classmethod
    def read(cls, line: str) -> _ParamLine:
        """Reads a line; ``place`` is the layer's name, which is unique."""
        kind, name, reads, writes, *words = shlex.split(line)
        ins, outs = words[: int(reads)], words[int(reads) : int(reads) + int(writes)]
        return cls(kind, name, tuple(ins), tuple(outs), tuple(_parameter(w) for w in words[int(reads) + int(writes) :]))

    def step(self, names: Mapping[str, str], shapes: Mapping[str, Shape]) -> Step:
        """The layer as a step of a fragment."""
        reads = tuple(names[blob] for blob in self.reads)
        read_shapes = tuple(shapes[blob] for blob in self.reads)
        return Step(Layer(self.type, self.params), reads, tuple(names[blob] for blob in self.writes), read_shapes)


def _parameter(word: str) -> tuple[int, Value]:
    """A parameter's id and value; an array comes without its length."""
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
    """An operator's file in the cache. Its folder names the versions, because other versions may write other layers."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    versions = "-".join(f"{name}{importlib.metadata.version(name)}" for name in ("pnnx", "ncnn", "onnxruntime"))
    return home / "autotailor" / "ncnn_layers" / f"{VERSION}-{versions}" / f"{feature.id}.json"


def _kept(feature: OperatorFeature) -> Outcome | None:
    """The outcome in the cache; None where there is none, or its file is damaged."""
    try:
        content = json.loads(_cache(feature).read_text(encoding="utf-8"))
        return content["refused"] or tuple(_read_step(step) for step in content["steps"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read_step(step: Mapping[str, Any]) -> Step:
    params = tuple((key, tuple(value) if isinstance(value, list) else value) for key, value in step["layer"]["params"])
    layer = Layer(step["layer"]["type"], params, step["layer"]["in_place"])
    shapes = tuple(tuple(shape) for shape in step["shapes"])
    return Step(layer, tuple(step["reads"]), tuple(step["writes"]), shapes)


def _keep(feature: OperatorFeature, outcome: Outcome) -> None:
    """Writes an outcome into the cache. A cache that cannot be written is no error."""
    refused = outcome if isinstance(outcome, str) else ""
    steps = [] if isinstance(outcome, str) else [asdict(step) for step in outcome]
    try:
        write_text(_cache(feature), json.dumps({"refused": refused, "steps": steps}))
    except OSError as error:
        logger.debug("the layers of operator %s are not cached: %s", feature.id, error)
