"""Compares an exported SubNet with its SuperNet, number by number."""

import io
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from autotailor.ir.execution.modules.graph import Outputs
from autotailor.profiling.runtimes.base import rows
from autotailor.task.interface import Task

Array = npt.NDArray[np.float32]
Arrays = Array | tuple[Array, ...]
Runner = Callable[[Array], Arrays]
"""From images ``[n, 3, r, r]`` to what a network returns: an array ``[n, ...]``, or a tuple of several."""


@dataclass(frozen=True)
class Comparison:
    """One exported file's outputs against the SuperNet's.

    ``max_relative_error`` is max |y - reference| / max |reference| over all images and numbers of an output, and the
    largest of all outputs; ``same_predictions`` is how far both say the same, 0 to 1 (``Task.agree``).
    """

    file: str
    runtime: str
    version: str
    max_relative_error: float
    same_predictions: float


@dataclass(frozen=True)
class Verification:
    """The content of ``verification.json``.

    Attributes:
        subnet: id of the SubNet.
        tolerance: largest relative error allowed.
        images: source and shape of the input, so that anyone can repeat the comparison by hand.
        reference: what the SuperNet returns for those images: logits ``[n, classes]`` of a classifier; of another
            network, whose outputs may be large, nothing.
        comparisons: one for each exported file.
        left_out: maps each runtime whose files are left out to the reason.
    """

    subnet: str
    tolerance: float
    images: Mapping[str, Any]
    reference: list[list[float]]
    comparisons: tuple[Comparison, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether every file agrees with the SuperNet within the tolerance."""
        return all(c.max_relative_error <= self.tolerance for c in self.comparisons)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"passed": self.passed, **asdict(self), "comparisons": [asdict(c) for c in self.comparisons]}

    def metrics(self) -> dict[str, float]:
        """Largest error of each runtime, for tracking."""
        worst: dict[str, float] = {}
        for each in self.comparisons:
            name = f"max_relative_error_{each.runtime}"
            worst[name] = float(np.maximum(each.max_relative_error, worst.get(name, 0.0)))  # keeps NaN
        return worst


def compare(
    file: str, runtime: str, version: str, run: Runner, images: Array, reference: Arrays, task: Task
) -> Comparison:
    """Runs images through one exported file and compares its outputs with the reference."""
    outputs = _shaped(run(images), reference)
    said, expected = (task.read(as_tensors(each), images.shape[-1]) for each in (outputs, reference))
    return Comparison(
        file=file,
        runtime=runtime,
        version=version,
        max_relative_error=relative_error(outputs, reference),
        same_predictions=float(task.agree(said, expected).double().mean()),
    )


def relative_error(outputs: Arrays, reference: Arrays) -> float:
    """The largest error of all outputs, each relative to its largest value; NaN where an output has one."""
    pairs = zip(arrays(_shaped(outputs, reference)), arrays(reference), strict=True)
    return float(np.max([np.abs(y - x).max() / max(float(np.abs(x).max()), 1e-30) for y, x in pairs]))


def arrays(outputs: Arrays) -> tuple[Array, ...]:
    """The arrays that a network returns."""
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _shaped(outputs: Arrays, reference: Arrays) -> Arrays:
    """Outputs in the shape of the reference; some runtimes return flat rows."""
    shaped = tuple(y.reshape(x.shape) for y, x in zip(arrays(outputs), arrays(reference), strict=True))
    return shaped if isinstance(reference, tuple) else shaped[0]


def as_tensors(outputs: Arrays) -> Outputs:
    """What a file returns, as a module would."""
    return tuple(map(torch.from_numpy, outputs)) if isinstance(outputs, tuple) else torch.from_numpy(outputs)


def as_arrays(outputs: Outputs) -> Arrays:
    """What a module returns, as arrays."""
    return tuple(each.numpy() for each in outputs) if isinstance(outputs, tuple) else outputs.numpy()


def onnx_session(path: Path) -> Any:
    """An ONNX file opened by onnxruntime, on one thread of the processor."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def run_onnx(path: Path) -> Runner:
    """A function that runs an ONNX file in onnxruntime, image by image."""
    session = onnx_session(path)
    name = session.get_inputs()[0].name
    return lambda images: rows([session.run(None, {name: image[None]}) for image in images])


def run_exported_program(path: Path) -> Runner:
    """A function that runs a saved ``torch.export`` program."""
    module = torch.export.load(io.BytesIO(path.read_bytes())).module()

    def run(images: Array) -> Arrays:
        with torch.no_grad():
            return as_arrays(module(torch.from_numpy(images)))

    return run
