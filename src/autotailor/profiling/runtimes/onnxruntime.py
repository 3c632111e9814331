"""ONNX Runtime on processors, with all graph optimizations."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from autotailor.ir.feature import OperatorFeature
from autotailor.ir.sequence import PlacedOperator
from autotailor.profiling.errors import DeviceError, ProfilingError
from autotailor.profiling.runtimes import onnxruntime_runner
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.onnxruntime_fusion import ONNXRUNTIME_FUSION
from autotailor.profiling.runtimes.onnxruntime_network import network_program
from autotailor.profiling.runtimes.onnxruntime_replicas import harness_program, replica_program, sink_program
from autotailor.profiling.runtimes.reference_network import IMAGE, reference_feature, reference_operators
from autotailor.profiling.runtimes.wheel import WheelRuntime

MODEL = "model.onnx"
LEVEL = "graph_optimization_level"


class OnnxRuntime(WheelRuntime):
    """Times with the onnxruntime wheel; options are ``graph_optimization_level`` and session configuration entries."""

    name = "onnxruntime"
    rules = ONNXRUNTIME_FUSION
    files = (MODEL,)
    output = "output"
    packages = ("onnxruntime", "onnx")
    backend = onnxruntime_runner.__file__

    def options(self) -> dict[str, Any]:
        """All optimizations; then what the configuration says."""
        return {LEVEL: "all"} | {key: str(value) for key, value in sorted(self.device.options.items())}

    def check(self) -> None:
        """Packages must be installed, options and precision must be ONNX Runtime's."""
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

    def anchor(self) -> OperatorFeature:
        """A whole network stands for an operator: it slows down as networks do."""
        return reference_feature()

    def replicas(self, feature: OperatorFeature) -> Program:
        """The replica network of an operator; the anchor as it is."""
        if feature == self.anchor():
            return replace(network_program(feature.id, reference_operators(), IMAGE[1:]), steps=())
        return replica_program(feature)

    def in_place(
        self, key: str, operators: Sequence[PlacedOperator], shape: tuple[int, ...], weighed: Collection[str]
    ) -> Program | None:
        """A whole network without weights; the profiler of a session times its kernels."""
        features = {operator.feature.id: operator.feature for operator in operators}
        parts = tuple(self.alone(features[key]) for key in features if key in weighed)
        return replace(network_program(key, operators, shape), parts=parts)

    def sink(self) -> Program:
        """Replicas of nothing."""
        return sink_program()

    def harness(self) -> Program:
        """A network of nothing."""
        return harness_program()

    def convert(self, onnx_path: Path, directory: Path) -> None:
        """The file as it is: sessions optimize it when they load it."""
        directory.mkdir(parents=True, exist_ok=True)
        if onnx_path.resolve() != (directory / MODEL).resolve():
            shutil.copyfile(onnx_path, directory / MODEL)

    def run(self, directory: Path, images: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Logits ``[n, classes]`` of images ``[n, 3, r, r]``, with the options that are timed."""
        try:
            session = onnxruntime_runner.open_session(
                str(directory / MODEL), onnxruntime_runner.session_options(self.settings())
            )
        except onnxruntime.capi.onnxruntime_pybind11_state.OnnxRuntimeException as error:
            raise ProfilingError(f"{directory / MODEL}: onnxruntime cannot load it: {error}") from error
        name = session.get_inputs()[0].name
        return np.concatenate([session.run(None, {name: image[None]})[0] for image in images])
