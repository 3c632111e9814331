"""The interface that every runtime offers, and what it hands to the runner on a device."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from autotailor.ir.errors import AutoTailorError
from autotailor.ir.feature import OperatorFeature
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.fusion.sequence import PlacedOperator
from autotailor.profiling.transports.base import Transport


@dataclass(frozen=True)
class Program:
    """One thing that the runner times: a replica network of an operator, or a whole network.

    Attributes:
        key: for the result's line.
        param: the network's text; None: read it from ``param_path``.
        inputs: shapes without the batch, in the order of the blobs in0, in1, ...
        long: the blob to extract.
        short: the blob that ends the shorter run of the replica differential; None: one length only.
        copies: replicas in the short and the long run.
        sink: whether each replica ends in a sink, whose cost is not the operator's.
        param_path: a network's file on the device.
        bin_path: its weights; None: zero weights.
        memory_mb: what its weights take, roughly.
        macs_m: millions of multiply-accumulates of a whole network that is run step by step.
        steps: of a whole network whose operators are timed where they stand: (operator id, the blob it has run for).
        parts: operators of it, alone, whose memory is weighed.
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
        """The part of it that the runner reads."""
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
    """Path of the journal of a manifest, both on the device."""
    return f"{manifest}.journal"


class Runtime(ABC):
    """What executes networks on a device.

    Attributes:
        name: as the device's configuration calls it.
        fusion: what it runs as one kernel.
        files: what `convert` writes into a folder: the network, then its weights where they are in a file of their own.
        output: what a converted network is asked for.
        resumes: whether its runner, started again with the same manifest, repeats what it had finished from a journal
            on the device and goes on from there.
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
        """Raises DeviceError when the runtime is not installed or cannot do what is asked; asks no device."""

    def check_device(self, hardware: Mapping[str, Any]) -> None:  # noqa: B027 (most run everywhere)
        """Raises DeviceError when nothing is built for a device with these facts (``Transport.probe``)."""

    def prepare(self, transport: Transport, hardware: Mapping[str, Any]) -> None:  # noqa: B027
        """Puts on the device what the runner needs there, and learns its version.

        Args:
            transport: to the device.
            hardware: what it has told of itself.

        Raises:
            DeviceError: the runner is missing, or does not run there.
        """

    @abstractmethod
    def runner(self, manifest: str) -> list[str]:
        """The command that times the programs of a manifest and prints one JSON line for each."""

    def manifest(self, manifest: Mapping[str, Any]) -> str:
        """The text of a manifest (``settings`` and ``batches``), as this runtime's runner reads it."""
        return json.dumps(manifest)

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What the runner sets before it loads anything: options, threads, cores, warm-up."""

    @abstractmethod
    def replicas(self, feature: OperatorFeature) -> Program:
        """The replica network of an operator; raises ProfilingError for kinds it cannot write."""

    def refusals(self, features: Sequence[OperatorFeature]) -> dict[str, str]:
        """Ids of the operators that the runtime cannot write or run, with the reasons.

        Args:
            features: distinct operators, as the runtime's fusion rules make them.
        """
        refused = {}
        for feature in features:
            try:
                self.replicas(feature)
            except AutoTailorError as error:
                refused[feature.id] = str(error)
        return refused

    def in_place(
        self, key: str, operators: Sequence[PlacedOperator], shape: tuple[int, ...], weighed: Collection[str]
    ) -> Program | None:
        """A whole network whose operators are timed where they stand; None where the runtime cannot stop between them.

        Args:
            key: for its line.
            operators: in topological order.
            shape: of the image, without the batch.
            weighed: ids of operators whose memory is to be weighed, too.
        """
        return None

    def alone(self, feature: OperatorFeature) -> Program:
        """An operator in a network of its own: what a naive table times, and what weighs its memory."""
        program = self.replicas(feature)
        return replace(program, long=program.short or program.long, short=None, sink=False)

    @abstractmethod
    def anchor(self) -> OperatorFeature:
        """The operator that is measured in every batch, to correct the machine's drift."""

    @abstractmethod
    def sink(self) -> Program:
        """Replicas of nothing: what a replica costs besides its operator."""

    @abstractmethod
    def harness(self) -> Program:
        """A network of nothing: what calling the runtime costs."""

    def network(
        self, key: str, directory: Path, inputs: Sequence[tuple[int, ...]], folder: str | None = None
    ) -> Program:
        """A converted network.

        Args:
            key: for its result.
            directory: its files here.
            inputs: shapes without the batch.
            folder: its files on the device; None: where they are here.
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

    @abstractmethod
    def run(self, directory: Path, images: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Logits ``[n, classes]`` of images ``[n, 3, r, r]`` through a converted network, on this machine."""
