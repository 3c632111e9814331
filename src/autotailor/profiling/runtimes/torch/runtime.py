"""The runtime ``torch``: eager PyTorch, where every operator is a separate call, on the processor or with CUDA."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch

from autotailor.ir.errors import AutoTailorError
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.execution.patterns import PATTERNS
from autotailor.ir.feature import OperatorFeature
from autotailor.ir.fusion.rules import FusionRules
from autotailor.profiling.errors import DeviceError, ProfilingError
from autotailor.profiling.runtimes.base import Arrays, Program, rows
from autotailor.profiling.runtimes.torch import runner as torch_runner
from autotailor.profiling.runtimes.torch.tracing import nothing, replica_program, trace, written
from autotailor.profiling.runtimes.wheel import WheelRuntime

CALLS, WEIGHTS = "model.torch.json", "model.torch.pt"
OPTIONS = {"device": "cpu", "channels_last": False}

TORCH_FUSION = FusionRules(name="torch", free=frozenset({"Identity", "Dropout"}), patterns=PATTERNS)
"""Eager PyTorch fuses nothing and skips Dropout in inference; some subgraphs are written as one function."""


class TorchRuntime(WheelRuntime):
    """Times with PyTorch. Its options are ``device`` (``cpu``, ``cuda``, ``cuda:1``) and ``channels_last``."""

    name = "torch"
    rules = TORCH_FUSION
    files = (CALLS, WEIGHTS)
    output = "long"
    packages = ("torch",)
    backend = torch_runner.__file__
    option_names: ClassVar[frozenset[str]] = frozenset(OPTIONS)

    def options(self) -> dict[str, Any]:
        """Where and how PyTorch computes."""
        return {**OPTIONS, **self.device.options, "precision": self.device.precision}

    def facts(self) -> dict[str, Any]:
        """Version and options, and the name of the GPU if one computes."""
        facts = dict(super().facts())
        if self.options()["device"] != "cpu" and not self.remote and torch.cuda.is_available():
            facts["cuda"] = {"version": torch.version.cuda, "gpu": torch.cuda.get_device_name(self.options()["device"])}
        return facts

    def check(self) -> None:
        """Refuses unknown options, and CUDA or half precision where this computer cannot compute with them."""
        super().check()
        self.refuse_options(set(self.option_names))
        where = str(self.options()["device"])
        if where.partition(":")[0] not in ("cpu", "cuda"):
            raise DeviceError(f"device {self.device.name}: options.device is {where!r}, expected cpu, cuda or cuda:N")
        if where != "cpu" and not self.remote and not torch.cuda.is_available():
            raise DeviceError(f"device {self.device.name}: PyTorch finds no CUDA here; set device.options.device=cpu")
        if where == "cpu" and self.device.precision != "fp32":
            raise DeviceError(
                f"device {self.device.name}: the runtime 'torch' computes in fp32 on processors: "
                "set device.precision=fp32"
            )

    def replicas(self, feature: OperatorFeature) -> Program:
        """The calls of an operator, which are made with several sets of weights."""
        return replica_program(feature)

    def sink(self) -> Program:
        """Copies without calls: a copy needs no sink, because its results are simply freed."""
        return Program("sink", nothing(), ((4,),), "long", "short", (1, 16))

    def harness(self) -> Program:
        """A network without calls."""
        return Program("harness", nothing(), ((4,),), "long")

    def convert(self, onnx_path: Path, directory: Path) -> None:
        """Traces the network's calls, and writes them and the weights into two files."""
        # Imported here: checking a device at the start of a run needs no compiler.
        from autotailor.compiler import read_graph

        directory.mkdir(parents=True, exist_ok=True)
        try:
            graph = read_graph(onnx_path)
        except AutoTailorError as error:
            raise ProfilingError(f"{onnx_path}: it cannot be read as a network: {error}") from error
        shape = graph.shapes[graph.input]
        traced = trace(GraphModule(graph).eval(), [torch.rand(shape)])
        (directory / CALLS).write_text(written(traced, (shape,)))
        torch.save({name: tensor.detach().clone() for name, tensor in traced.weights.items()}, directory / WEIGHTS)

    def run(self, directory: Path, images: npt.NDArray[np.float32]) -> Arrays:
        """See Runtime; computed with the options that are also timed."""
        program = torch_runner.LoadedProgram(self.network("run", directory, ()).to_manifest(), self.settings())
        results = []
        with torch.inference_mode():
            for image in images:
                values = {**program.weights[0], "in0": program.placed(torch.from_numpy(image[None]))}
                program.compute(values)
                results.append([values[name].float().cpu().numpy() for name in program.returned])
        return rows(results)
