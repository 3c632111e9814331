"""The runtime ``onnxruntime``: ONNX Runtime on processors, with all graph optimizations."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.ir.errors import first_line
from autotailor.ir.feature import OperatorFeature
from autotailor.ir.fusion.sequence import PlacedOperator
from autotailor.profiling.errors import DeviceError, ProfilingError
from autotailor.profiling.runtimes.base import MOST_SAID, Arrays, Program, rows
from autotailor.profiling.runtimes.in_place import InPlaceRuntime
from autotailor.profiling.runtimes.onnxruntime import runner as onnxruntime_runner
from autotailor.profiling.runtimes.onnxruntime.fusion import ONNXRUNTIME_FUSION
from autotailor.profiling.runtimes.onnxruntime.replicas import (
    harness_program,
    network_program,
    replica_program,
    sink_program,
)

MODEL = "model.onnx"
LEVEL = "graph_optimization_level"


def _sort(feature: OperatorFeature) -> object:
    """Key of operators that ONNX Runtime loads alike: same kinds, numbers of axes and attributes."""
    shapes = (feature.inputs, feature.outputs, feature.weights)
    ranks = tuple(tuple(map(len, each)) for each in shapes)
    followers = tuple(follower.kind for follower in feature.followers)
    return feature.kind, followers, ranks, tuple(name for name, _ in feature.attributes)


class OnnxRuntime(InPlaceRuntime):
    """Times with ONNX Runtime's wheel. Options are ``graph_optimization_level`` and session configuration entries."""

    name = "onnxruntime"
    rules = ONNXRUNTIME_FUSION
    files = (MODEL,)
    output = "output"
    packages = ("onnxruntime", "onnx")
    backend = onnxruntime_runner.__file__

    def options(self) -> dict[str, Any]:
        """All optimizations, unless the configuration says otherwise."""
        return {LEVEL: "all"} | {key: str(value) for key, value in sorted(self.device.options.items())}

    def check(self) -> None:
        """Refuses missing packages, and options or a precision that ONNX Runtime does not have."""
        super().check()
        self.refuse_options({LEVEL, *(key for key in self.device.options if key.startswith("session."))})
        if self.options()[LEVEL] not in onnxruntime_runner.LEVELS:
            raise DeviceError(
                f"device {self.device.name}: {LEVEL} is {self.options()[LEVEL]!r}, "
                f"expected one of {', '.join(onnxruntime_runner.LEVELS)}"
            )
        if self.device.precision != "fp32":
            raise DeviceError(
                f"device {self.device.name}: the runtime 'onnxruntime' computes in fp32 on processors: "
                "set device.precision=fp32"
            )

    def refusals(self, features: Sequence[OperatorFeature]) -> dict[str, str]:
        """Operators without a replica, and operators that ONNX Runtime does not load; one of each sort is tried."""
        refused = super().refusals(features)
        failures: dict[object, str] = {}
        for feature in features:
            if feature.id not in refused:
                sort = _sort(feature)
                if sort not in failures:
                    failures[sort] = self._failure(feature)
                if failures[sort]:
                    refused[feature.id] = f"operator {feature.id}: {failures[sort]}"
        return refused

    def _failure(self, feature: OperatorFeature) -> str:
        """Why ONNX Runtime does not load a copy of an operator; empty where it does."""
        program = self.replicas(feature)
        try:
            model = onnxruntime_runner.read_model(str(program.param), program.short or program.long)
            options = onnxruntime_runner.session_options(self.settings())
            onnxruntime_runner.open_session(model.SerializeToString(), options, onnxruntime_runner.KEEP)
        except Exception as error:  # errors of onnxruntime have no common class
            return first_line(error)[:MOST_SAID]
        return ""

    def copied(self, feature: OperatorFeature) -> Program:
        """The replica network of an operator."""
        return replica_program(feature)

    def written(self, key: str, operators: Sequence[PlacedOperator], shape: tuple[int, ...]) -> Program:
        """A whole network, whose kernels are timed by a session's profiler."""
        return network_program(key, operators, shape)

    def sink(self) -> Program:
        """Replicas without an operator."""
        return sink_program()

    def harness(self) -> Program:
        """A network without operators."""
        return harness_program()

    def convert(self, onnx_path: Path, directory: Path) -> None:
        """Copies the ONNX file as it is, because a session optimizes the model when it loads the file."""
        directory.mkdir(parents=True, exist_ok=True)
        if onnx_path.resolve() != (directory / MODEL).resolve():
            shutil.copyfile(onnx_path, directory / MODEL)

    def run(self, directory: Path, images: npt.NDArray[np.float32]) -> Arrays:
        """See Runtime; computed with the options that are also timed."""
        try:
            session = onnxruntime_runner.open_session(
                str(directory / MODEL), onnxruntime_runner.session_options(self.settings())
            )
        except Exception as error:  # errors of onnxruntime have no common class
            raise ProfilingError(f"{directory / MODEL}: onnxruntime cannot load the network: {error}") from error
        name = session.get_inputs()[0].name
        return rows([session.run(None, {name: image[None]}) for image in images])
