"""The runtime ``ncnn``: pnnx converts networks, with single-precision weights unless the device asks for less."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from autotailor.ir.feature import OperatorFeature
from autotailor.ir.fusion.sequence import PlacedOperator
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.runtimes.base import Arrays, Program
from autotailor.profiling.runtimes.in_place import InPlaceRuntime
from autotailor.profiling.runtimes.ncnn import runner as ncnn_runner
from autotailor.profiling.runtimes.ncnn.fragments import layer_types, refused_operators
from autotailor.profiling.runtimes.ncnn.fusion import NCNN_FUSION
from autotailor.profiling.runtimes.ncnn.param import joint_output, returned, with_names
from autotailor.profiling.runtimes.ncnn.pnnx import run_pnnx
from autotailor.profiling.runtimes.ncnn.replicas import (
    alone_program,
    harness_program,
    network_program,
    replica_program,
    sink_program,
)
from autotailor.profiling.runtimes.ncnn.trial import run_images

PARAM, WEIGHTS = "model.ncnn.param", "model.ncnn.bin"
FP16_OPTIONS = ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic")
FP32_OPTIONS = ("use_bf16_packed", "use_bf16_storage", "use_int8_inference")


class NcnnRuntime(InPlaceRuntime):
    """Times with ncnn's Python wheel, in a separate process."""

    name = "ncnn"
    rules = NCNN_FUSION
    files = (PARAM, WEIGHTS)
    output = "out0"
    packages = ("ncnn", "pnnx")
    backend = ncnn_runner.__file__

    def options(self) -> dict[str, bool]:
        """Ncnn's options: those that the precision implies, then those of the configuration."""
        half = self.device.precision == "fp16"
        options = dict.fromkeys(FP16_OPTIONS, half) | dict.fromkeys(FP32_OPTIONS, False)
        return options | {key: bool(value) for key, value in sorted(self.device.options.items())}

    def check(self) -> None:
        """Refuses a missing ncnn or pnnx, and options that ncnn does not have."""
        super().check()
        import ncnn

        self.refuse_options({name for name in dir(ncnn.Option()) if name.startswith("use_")})

    def refusals(self, features: Sequence[OperatorFeature]) -> dict[str, str]:
        """Operators without layers, and operators whose layers ncnn cannot run or the runner lacks."""
        refused = refused_operators(features)
        if lacking := self.lacking_layers():
            for feature in features:
                if feature.id not in refused and (
                    types := sorted(each for each in layer_types(feature) if each.lower() in lacking)
                ):
                    refused[feature.id] = (
                        f"operator {feature.id}: the compiled runner is built without the layers {', '.join(types)}: "
                        "take these layers out of the list in src/runner/CMakeLists.txt, then: make runner"
                    )
        return refused

    def lacking_layers(self) -> frozenset[str]:
        """Types of layers, in lower case, that the measuring ncnn lacks; the wheel lacks none."""
        return frozenset()

    def copied(self, feature: OperatorFeature) -> Program:
        """The replica network of an operator."""
        return replica_program(feature)

    def alone(self, feature: OperatorFeature) -> Program:
        """An operator as a network of its own."""
        return alone_program(feature)

    def written(self, key: str, operators: Sequence[PlacedOperator], shape: tuple[int, ...]) -> Program:
        """A whole network; its steps can be timed, because an extractor goes on from the blobs it has computed."""
        return network_program(key, operators, shape)

    def sink(self) -> Program:
        """Replicas without an operator."""
        return sink_program()

    def harness(self) -> Program:
        """A network without operators."""
        return harness_program()

    def convert(self, onnx_path: Path, directory: Path) -> None:
        """Writes ``model.ncnn.param`` and ``model.ncnn.bin`` (single precision) into a folder.

        Raises:
            ProfilingError: pnnx fails or leaves no files.
        """
        directory.mkdir(parents=True, exist_ok=True)
        run_pnnx(onnx_path, directory / PARAM, directory / WEIGHTS)
        outputs = returned((directory / PARAM).read_text(encoding="utf-8"))
        if len(outputs) > 1:
            self.name_blobs(directory, "in0", *(f"{name}.all" for name in outputs))

    def network(
        self, key: str, directory: Path, inputs: Sequence[tuple[int, ...]], folder: str | None = None
    ) -> Program:
        """See Runtime; of several outputs that is asked for which needs all (``with_names``)."""
        program = super().network(key, directory, inputs, folder)
        joint = joint_output((directory / PARAM).read_text(encoding="utf-8"))
        return replace(program, long=joint) if joint else program

    def name_blobs(self, directory: Path, image: str, *outputs: str) -> None:
        """See Runtime; pnnx's own names ``in0``, and ``out0``, ``out1`` ... stay as well."""
        param = directory / PARAM
        param.write_text(with_names(param.read_text(encoding="utf-8"), image, *outputs), encoding="utf-8")

    def run(self, directory: Path, images: npt.NDArray[np.float32]) -> Arrays:
        """See Runtime; computed with the options that are also timed, and rows are flat.

        ncnn runs in a process of its own, because a network that it reads wrongly may crash it.

        Raises:
            ProfilingError: ncnn cannot load or run the network, or crashes over it.
            StoppedError: the process was ended from outside.
        """
        param, weights = directory / PARAM, directory / WEIGHTS
        if not param.exists() or not weights.exists():
            raise ProfilingError(f"{directory}: {PARAM} and {WEIGHTS} are missing; convert the network again")
        if strange := _strange_layers(param):
            raise ProfilingError(
                f"ncnn has no layer {' or '.join(strange)}: pnnx, its converter, does not know this operator, and "
                f"left it as it is; write the network without it, or take another runtime (device.runtime)"
            )
        outputs, reason = run_images(param, weights, images, self.settings())
        if not outputs:
            raise ProfilingError(
                f"{directory}: {reason}: pnnx, its converter, has read an operator wrongly; write the network in "
                f"another way, or take another runtime (device.runtime)"
            )
        return outputs if len(outputs) > 1 else outputs[0]


def _strange_layers(param: Path) -> list[str]:
    """Types of layers in a ``.param`` that ncnn does not have."""
    import ncnn

    kinds = {line.split()[0] for line in param.read_text(encoding="utf-8").splitlines()[2:] if line.strip()}
    return sorted(kind for kind in kinds if ncnn.layer_to_index(kind) < 0)
