"""A member as the ncnn exporter writes it, with its own calibrated statistics, and what the SuperNet answers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch

from autotailor.artifacts import atomic
from autotailor.compiler.sources.outputs import no_classes
from autotailor.data import EvaluationSet
from autotailor.export.deployable import Deployable
from autotailor.export.files import ONNX, first_images
from autotailor.ir.execution.onnx_writer import to_onnx
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet
from autotailor.profiling.runtimes.base import Runtime
from autotailor.serving.errors import PoolError

Float32 = npt.NDArray[np.float32]
ANSWERS = "answers.npz"


@dataclass(frozen=True, eq=False)
class ExportedMember:
    """A SubNet's own files.

    Attributes:
        subnet: the SubNet.
        param, weights: its network and its ``.bin``.
        images: ``[n, 3, r, r]``.
        logits: of the SuperNet for the images, ``[n, classes]``.
        exits: logits of its exits for the images, in the order of the network.
        name: of the member in its pool; by its latency where there is none.
    """

    subnet: SubNet
    param: Path
    weights: Path
    images: Float32
    logits: Float32
    exits: tuple[Float32, ...] = ()
    name: str | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of an image."""
        channels, height, width = self.images.shape[1:]
        return channels, height, width


def check_network(net: SuperNet) -> None:
    """Raises PoolError for a network that does not return one row of numbers, which is all that a pool answers with."""
    if not net.num_classes:
        raise PoolError(
            f"network {net.name} {no_classes(net.graph.outputs)}; a pool answers with one row of numbers, because its "
            f"files, its server and its C interface have no places for maps or several outputs; the SubNets that the "
            f"rule export writes need no pool"
        )


def export_member(network: Deployable, evaluation: EvaluationSet, runtime: Runtime, folder: Path) -> ExportedMember:
    """Writes a SubNet's files into a folder, which appears whole or not at all.

    Args:
        network: the SubNet with its calibrated statistics.
        evaluation: whose first images the SuperNet answers.
        runtime: ncnn, which converts.
        folder: of the files.

    Raises:
        PoolError: the network does not return one row of numbers.
        ProfilingError: ncnn cannot run the network.
    """
    check_network(network.net)
    images = first_images(network.graph, evaluation)
    with torch.no_grad():
        logits = network.reference(torch.from_numpy(images)).numpy()
    with atomic(folder) as temporary:
        temporary.mkdir()
        onnx.save(to_onnx(network.graph, names=network.net.names), str(temporary / ONNX))
        runtime.convert(temporary / ONNX, temporary)
        runtime.run(temporary, images[:1])  # in a process of its own: what ncnn crashes over is loaded nowhere else
        (temporary / ONNX).unlink()
        np.savez(temporary / ANSWERS, images=images, logits=logits)
    return read_member(network.subnet, runtime, folder)


def read_member(subnet: SubNet, runtime: Runtime, folder: Path) -> ExportedMember:
    """What ``export_member`` has written."""
    with np.load(folder / ANSWERS) as file:
        arrays: dict[str, Any] = {key: file[key] for key in ("images", "logits")}
    param, weights = (folder / name for name in runtime.files)
    return ExportedMember(subnet, param, weights, **arrays)
