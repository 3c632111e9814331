"""The interface that every runtime offers, and the programs that a runtime gives to the runner on a device."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from autotailor.ir.errors import AutoTailorError, first_line
from autotailor.ir.feature import OperatorFeature
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.fusion.sequence import PlacedOperator
from autotailor.profiling.transports.base import Transport

Arrays = npt.NDArray[np.float32] | tuple[npt.NDArray[np.float32], ...]
MOST_SAID = 300
"""Characters of an error of pnnx, ncnn or onnxruntime that a message repeats."""


def rows(images: Sequence[Sequence[npt.NDArray[np.float32]]]) -> Arrays:
    """The outputs of several images, from all outputs of each, ``[1, ...]``; see ``Runtime.run``."""
    joined = tuple(np.concatenate(each) for each in zip(*images, strict=True))
    return joined if len(joined) > 1 else joined[0]


@dataclass(frozen=True)
class Program:
    """One thing that the runner times: a replica network of an operator, or a whole network.

    Attributes:
        key: the name under which the runner reports the program.
        param: the network's text; None where the runner reads it from ``param_path``.
        inputs: shapes of the inputs without the batch, in the order of the blobs in0, in1, ...
        long: the blob that the (long) run computes; of ONNX Runtime perhaps several, between which blanks stand.
        short: the blob that the shorter run of the replica differential computes; None for runs of one length only.
        copies: number of replicas in the short and in the long run.
        sink: whether each replica ends in a sink, whose cost does not belong to the operator.
        param_path: the network's file on the device.
        bin_path: the file of the network's weights; None for zero weights.
        memory_mb: rough size of the weights in memory.
        macs_m: millions of multiply-accumulates of a whole network that is run step by step.
        steps: the operators of a whole network that are timed in place, as (operator id, blob after the operator).
        parts: single operators of the network whose memory is weighed.
    """

    key: str
    param: str | None
    inputs: tuple[tuple[int, ...], ...]
    long: str
    short: str | None = None
    copies: tuple[int, int] = (0, 1)
    sink: bool = False
    param_path: str | None = None
    bin_path: str | None = None
    memory_mb: float = 0.0
    macs_m: float = 0.0
    steps: tuple[tuple[str, str], ...] = ()
    parts: tuple[Program, ...] = ()

    def to_manifest(self) -> dict[str, Any]:
        """The fields that the runner reads, in JSON's types."""
        return {
            "key": self.key,
            "param": self.param,
            "param_path": self.param_path,
            "bin_path": self.bin_path,
            "inputs": self.inputs,
            "short": self.short,
            "long": self.long,
            "copies": self.copies,
            "steps": [blob for _, blob in self.steps],
            "parts": [part.to_manifest() for part in self.parts],
        }


def journal_of(manifest: str) -> str:
    """The path of a manifest's journal. Both files are on the device."""
    return f"{manifest}.journal"


class Runtime(ABC):
    """What executes networks on a device.

    Attributes:
        name: the runtime's name in a device's configuration.
        fusion: which operators the runtime runs as one kernel.
        files: names of the files that ``convert`` writes: the network, then the weights if they have a file of their
            own.
        output: name of a converted network's output.
        resumes: whether the runner keeps a journal on the device. Such a runner, started again with the same manifest,
            repeats the results in the journal and goes on behind them.
    """

    name: str
    files: ClassVar[tuple[str, ...]]
    output: ClassVar[str]
    fusion: FusionRules
    resumes: ClassVar[bool] = False

    @abstractmethod
    def facts(self) -> Mapping[str, Any]:
        """Name, version and options, for the fingerprint."""

    @abstractmethod
    def check(self) -> None:
        """Raises DeviceError when the runtime is not installed or cannot do what is configured; asks no device."""

    def check_device(self, hardware: Mapping[str, Any]) -> None:  # noqa: B027 (most runtimes run everywhere)
        """Raises DeviceError when no runner is built for a device with these facts (``Transport.probe``)."""

    def prepare(self, transport: Transport, hardware: Mapping[str, Any]) -> None:  # noqa: B027
        """Copies to the device what the runner needs there, and learns the runtime's version.

        Args:
            transport: transport to the device.
            hardware: the device's facts (``Transport.probe``).

        Raises:
            DeviceError: the runner is missing, or does not run on the device.
        """

    @abstractmethod
    def runner(self, manifest: str) -> list[str]:
        """The command that times the programs of a manifest and prints JSON lines about them."""

    def manifest(self, manifest: Mapping[str, Any]) -> str:
        """The text of a manifest (``settings`` and ``batches``), as this runtime's runner reads it."""
        return json.dumps(manifest)

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The settings that the runner applies before it loads a program: options, threads, cores, warm-up."""

    @abstractmethod
    def replicas(self, feature: OperatorFeature) -> Program:
        """The replica network of an operator; raises ProfilingError for kinds that the runtime cannot write."""

    def refusals(self, features: Sequence[OperatorFeature]) -> dict[str, str]:
        """Ids of the operators that the runtime cannot write or run, with the reasons.

        Args:
            features: distinct operators, fused by the runtime's fusion rules.
        """
        refused = {}
        for feature in features:
            try:
                self.replicas(feature)
            except AutoTailorError as error:
                refused[feature.id] = str(error)
            except Exception as error:  # a library that runs the operator may refuse it in any way
                refused[feature.id] = f"operator {feature.id}: {first_line(error)[:MOST_SAID]}"
        return refused

    def in_place(
        self, key: str, operators: Sequence[PlacedOperator], shape: tuple[int, ...], weighed: Collection[str]
    ) -> Program | None:
        """A whole network whose operators are timed in place; None where the runtime cannot time them separately.

        Args:
            key: the name under which the runner reports the network.
            operators: the network's operators in topological order.
            shape: the image's shape without the batch.
            weighed: ids of operators whose memory is to be weighed, too.
        """
        return None

    def alone(self, feature: OperatorFeature) -> Program:
        """An operator as a network of its own. A naive table would time this network; here it shows memory only."""
        program = self.replicas(feature)
        return replace(program, long=program.short or program.long, short=None, sink=False)

    @abstractmethod
    def anchor(self) -> OperatorFeature:
        """The operator that is measured in every batch, to correct the machine's drift."""

    @abstractmethod
    def sink(self) -> Program:
        """Replicas without an operator, which show what a replica costs besides its operator."""

    @abstractmethod
    def harness(self) -> Program:
        """A network without operators, which shows what calling the runtime costs."""

    def network(
        self, key: str, directory: Path, inputs: Sequence[tuple[int, ...]], folder: str | None = None
    ) -> Program:
        """The program of a converted network.

        Args:
            key: the name under which the runner reports the network.
            directory: folder of the network's files on this computer.
            inputs: shapes of the inputs without the batch.
            folder: folder of the network's files on the device; None where it is ``directory``.
        """
        where = directory if folder is None else PurePosixPath(folder)
        paths = [str(where / name) for name in self.files]
        return Program(
            key=key,
            param=None,
            inputs=tuple(inputs),
            long=self.output,
            param_path=paths[0],
            bin_path=paths[1] if len(paths) > 1 else None,
            memory_mb=2 * (directory / self.files[-1]).stat().st_size / 2**20,
        )

    @abstractmethod
    def convert(self, onnx_path: Path, directory: Path) -> None:
        """Converts an ONNX file into the runtime's own files in a folder."""

    def name_blobs(self, directory: Path, image: str, *outputs: str) -> None:  # noqa: B027 (most converters keep names)
        """Gives the input and the outputs of a converted network the names that they have in the ONNX file."""

    @abstractmethod
    def run(self, directory: Path, images: npt.NDArray[np.float32]) -> Arrays:
        """What a converted network returns for images ``[n, 3, r, r]``, computed on this computer.

        Returns:
            An array with a row for each image, ``[n, classes]`` of a classifier; a tuple of them where the network has
            several outputs. The axes of a row may be flat.
        """
