"""The stage ``export``: writes a SubNet as ONNX, PyTorch and the runtime's files, and verifies all of them."""

from __future__ import annotations

import io
import json
import logging
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import torch
from torch import nn

from autotailor.accuracy.backgrounds import Transparent, judge
from autotailor.data import EvaluationSet, Preparation, resize
from autotailor.export.deployable import Deployable
from autotailor.export.verification import (
    Array,
    Arrays,
    Comparison,
    Verification,
    as_arrays,
    compare,
    run_exported_program,
    run_onnx,
)
from autotailor.ir.errors import AutoTailorError
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.execution.onnx_writer import to_onnx
from autotailor.ir.graph import Graph
from autotailor.profiling.runtimes.stopped import StoppedError
from autotailor.task.interface import Task
from autotailor.task.registry import of

if TYPE_CHECKING:
    from autotailor.profiling.runtimes import Runtime

logger = logging.getLogger(__name__)

SCHEMA = 1
IMAGES = 8
ONNX, TORCH, SUBNET, VERIFICATION = "model.onnx", "model.pt2", "subnet.json", "verification.json"
GIVEN = "model.given.onnx"
"""The ONNX file that takes its image as the network's own file did, where that is not [1, 3, height, width]."""


class ExportError(AutoTailorError):
    """An exported SubNet does not compute what the SubNet computes in PyTorch."""


def export(
    network: Deployable,
    directory: Path,
    evaluation: EvaluationSet,
    runtime: Runtime,
    tolerance: float = 1e-4,
    *,
    needed: bool = True,
    preparation: Preparation | None = None,
    transparent: Transparent | None = None,
) -> Verification:
    """Writes a SubNet into a directory and compares every file with the SubNet in PyTorch.

    Args:
        network: the SubNet with its weights.
        directory: of the files; made if missing.
        evaluation: the evaluation set whose first images are compared.
        runtime: of the device; it converts the ONNX file into the runtime's own files.
        tolerance: largest error allowed, relative to the largest logit.
        needed: whether the runtime's own files must be written. Where another runtime measures the network, files that
            this runtime cannot write or run correctly are left out, and the verification gives the reason.
        preparation: what makes the network's input of a picture, for ``subnet.json``; None where it is not known.
        transparent: pictures with transparency, on which ``subnet.json`` says how right the network is.

    Raises:
        ExportError: an exported file differs by more than the tolerance.
        ProfilingError: the runtime cannot run the network, and its files are needed.
    """
    import onnxruntime

    directory.mkdir(parents=True, exist_ok=True)
    images, task = first_images(network.graph, evaluation), of(evaluation)
    with torch.no_grad():
        reference = as_arrays(network.reference(torch.from_numpy(images)))
    onnx.save(to_onnx(network.graph, names=network.net.names), str(directory / ONNX))
    save_program(GraphModule(network.graph).eval(), images, directory / TORCH)
    comparisons = [
        compare(ONNX, "onnxruntime", onnxruntime.__version__, run_onnx(directory / ONNX), images, reference, task),
        compare(TORCH, "torch", torch.__version__, run_exported_program(directory / TORCH), images, reference, task),
    ]
    comparisons += _as_given(network, directory, images, task)
    converted, reason = _converted(network, runtime, directory, images, reference, task, needed, tolerance)
    verification = Verification(
        subnet=network.subnet.id,
        tolerance=tolerance,
        images={"from": "the first images of the test set", "shape": list(images.shape)},
        reference=reference.tolist() if network.net.num_classes and isinstance(reference, np.ndarray) else [],
        comparisons=(*comparisons, *converted),
        left_out={runtime.name: reason} if reason else {},
    )
    _write_json(directory / SUBNET, describe_subnet(network, preparation, transparent))
    _write_json(directory / VERIFICATION, verification.to_dict())
    if not verification.passed:
        failed = [c for c in verification.comparisons if not c.max_relative_error <= tolerance]
        worst = max(failed, key=lambda c: c.max_relative_error)
        raise ExportError(
            f"SubNet {network.subnet.id}: {worst.file} differs from {network.source} by a relative error of "
            f"{worst.max_relative_error:.2e}, {tolerance:.0e} is allowed; see {directory / VERIFICATION}"
        )
    return verification


def _as_given(network: Deployable, directory: Path, images: Array, task: Task) -> list[Comparison]:
    """Writes the ONNX file that takes the given file's image, where that is another, and compares it."""
    import onnxruntime

    given, path = network.net.graph.given, directory / GIVEN
    path.unlink(missing_ok=True)  # of an earlier network
    if not given:
        return []
    onnx.save(given.restored(to_onnx(network.graph, names=network.net.names)), str(path))
    with torch.no_grad():
        reference = as_arrays(network.reference(torch.from_numpy(given.seen(images))))
    run = run_onnx(path)
    version = onnxruntime.__version__
    return [compare(GIVEN, "onnxruntime", version, lambda x: run(given.taken(x)), images, reference, task)]


def _converted(
    network: Deployable,
    runtime: Runtime,
    directory: Path,
    images: Array,
    reference: Arrays,
    task: Task,
    needed: bool,
    tolerance: float,
) -> tuple[tuple[Comparison, ...], str]:
    """Converts the ONNX file into the runtime's own files, and compares them with their source.

    Returns:
        The comparison and ""; or no comparison and the reason, where the files are wrong but not needed.

    Raises:
        ProfilingError: the runtime cannot run the network, and its files are needed.
    """
    version = str(runtime.facts().get("version", "unknown"))
    name = f"model.{runtime.name}"
    try:
        runtime.convert(directory / ONNX, directory)
        runtime.name_blobs(directory, *network.net.names)
        comparison = compare(name, runtime.name, version, lambda x: runtime.run(directory, x), images, reference, task)
        if needed or comparison.max_relative_error <= tolerance:
            return (comparison,), ""
        reason = f"{name} differs from {network.source} by a relative error of {comparison.max_relative_error:.2e}"
    except StoppedError:
        raise
    except Exception as error:  # files that are not needed end no run, whatever is wrong with them
        if needed:
            raise
        reason = str(error) if isinstance(error, AutoTailorError) else f"{type(error).__name__}: {error}"
    for file in runtime.files:
        (directory / file).unlink(missing_ok=True)
    logger.warning(
        "the export has no files of the runtime %s: %s; to measure with it, replace what it lacks in the network",
        *(runtime.name, reason),
    )
    return (), reason


def describe_subnet(
    network: Deployable, preparation: Preparation | None, transparent: Transparent | None
) -> dict[str, Any]:
    """The content of ``subnet.json``."""
    net, subnet = network.net, network.subnet
    side = network.graph.shapes[network.graph.input][-1]
    judged = judge(network.reference, transparent, side) if transparent else None
    if judged and judged.better:
        logger.warning("SubNet %s: %s", subnet.id, judged.sentence)
    row = subnet.to_array()
    return {
        "network": net.name,
        "id": subnet.id,
        "weights": network.weights,
        "assignment": subnet.assignment,
        "modifications": {m.variable: m.choice for m in subnet.modifications},
        "input": net.names[0],
        **({"output": net.names[1]} if len(net.names) == 2 else {"outputs": list(net.names[1:])}),
        "input_shape": list(network.graph.shapes[network.graph.input]),
        "given": net.graph.given.image(network.graph.shapes[network.graph.input]) if net.graph.given else None,
        **({"classes": net.num_classes} if net.num_classes else {"output_shapes": _output_shapes(network)}),
        "parameters_m": float(net.parameters().predict(row)[0]),
        "macs_m": float(net.macs().predict(row)[0]),
        "preparation": asdict(preparation) if preparation else None,
        "transparency": asdict(judged) if judged else None,
    }


def _output_shapes(network: Deployable) -> dict[str, list[int]]:
    """Shape of each output of a SubNet, by name, batch 1."""
    graph = network.graph
    return {name: list(graph.shapes[own]) for name, own in zip(network.net.names[1:], graph.outputs, strict=True)}


def save_program(module: nn.Module, images: Array, path: Path) -> None:
    """Saves a module as a ``torch.export`` program with a dynamic batch axis; it loads without autotailor."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batch = torch.export.Dim("batch", min=1)
        program = torch.export.export(module, (torch.from_numpy(images),), dynamic_shapes=({0: batch},))
        buffer = io.BytesIO()
        torch.export.save(program, buffer)
    path.write_bytes(buffer.getvalue())


def first_images(graph: Graph, evaluation: EvaluationSet) -> Array:
    """The first images of an evaluation set at the size of a network's input: ``[n, 3, r, r]``."""
    images, _ = next(iter(evaluation.batches(IMAGES)))
    sides = graph.shapes[graph.input][2:]
    resized: Array = np.ascontiguousarray(resize(images, *sides).numpy(), dtype=np.float32)
    return resized


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps({"schema_version": SCHEMA, **content}, indent=2) + "\n", encoding="utf-8")
